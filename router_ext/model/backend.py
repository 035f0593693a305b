"""A backend: one upstream that answers inference requests, and what its engine type implies."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from router_ext.model.secret import Secret


class BackendType(StrEnum):
    """The engine or provider behind a backend."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMACPP = "llamacpp"
    OPENAI = "openai"
    GEMINI = "gemini"
    OLLAMA = "ollama"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class TypeTraits:
    """What a backend type sets unless the configuration says otherwise.

    ``api_base`` is the path that replaces the leading ``/v1`` of a client's path. ``auth_header`` names the header that
    carries the key, ``auth_scheme`` is its prefix (with the space). ``health_path`` is the default probe, below the
    URL's root. ``caches_prefixes`` is true for engines with a prefix cache of their own, ``takes_stream_options`` for
    those that are known to take ``stream_options`` and to report a stream's usage when it asks for that.
    """

    api_base: str
    auth_header: str
    auth_scheme: str
    health_path: str
    caches_prefixes: bool
    takes_stream_options: bool = True


_LOCAL: Final = TypeTraits("/v1", "authorization", "Bearer ", "/health", caches_prefixes=True)

TRAITS: Final[dict[BackendType, TypeTraits]] = {
    BackendType.VLLM: _LOCAL,
    BackendType.SGLANG: _LOCAL,
    BackendType.LLAMACPP: _LOCAL,
    BackendType.OPENAI: TypeTraits("/v1", "authorization", "Bearer ", "/v1/models", caches_prefixes=False),
    BackendType.GEMINI: TypeTraits(
        "/v1beta/openai",
        "authorization",
        "Bearer ",
        "/v1beta/openai/models",
        caches_prefixes=False,
        takes_stream_options=False,
    ),
    BackendType.OLLAMA: TypeTraits("/v1", "authorization", "Bearer ", "/api/version", caches_prefixes=False),
    BackendType.ANTHROPIC: TypeTraits("/v1", "x-api-key", "", "/v1/models", caches_prefixes=False),
}
"""Anthropic, Gemini, OpenAI and Ollama are reached through their OpenAI-compatible endpoints. Gemini's may refuse
fields that it does not document, as ``stream_options``.
"""

CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""Headers that may carry a caller's key: all are removed where a backend's own key is set."""

API_HEADERS: Final = (
    *("anthropic-version", "anthropic-beta", "openai-organization", "openai-project", "openai-beta"),
    *("traceparent", "tracestate"),
)
"""Further headers of a client that a backend must see when the router itself sends the request."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a backend listens. ``scheme`` is ``http`` or ``https``; ``path`` has no trailing slash ("" means none)."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def tls(self) -> bool:
        """True for https."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """``host[:port]`` as a Host header carries it: a default port is left out, an IPv6 address is bracketed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.tls else 80
        return host if self.port == default else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Opens after ``error_threshold`` errors (≥ 1) within ``window_s`` seconds (> 0)."""

    error_threshold: int = 5
    window_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Backend:
    """One upstream. ``model_name`` is what it calls its model; ``aliases`` are names clients may use for it.

    Prices are US dollars per 1,000,000 tokens, None when the configuration gives none; prompt tokens that were in a
    cache cost ``cost_cached_input_1m`` where there is one. ``max_concurrent`` bounds the requests in flight from this
    router.
    """

    name: str
    endpoint: Endpoint
    type: BackendType
    model_name: str
    aliases: frozenset[str] = frozenset()
    lora_adapters: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()
    max_concurrent: int = 64
    cost_input_1m: float | None = None
    cost_cached_input_1m: float | None = None
    cost_output_1m: float | None = None
    api_key: Secret | None = field(default=None, repr=False)
    health_endpoint: str = "/health"
    circuit_breaker: CircuitBreaker | None = None

    @property
    def cluster(self) -> str:
        """Name of the backend's Envoy cluster; also the value of the routing header."""
        return f"backend-{self.name}"

    @property
    def traits(self) -> TypeTraits:
        """What the engine type implies."""
        return TRAITS[self.type]

    @property
    def served_names(self) -> frozenset[str]:
        """Every model name that this backend answers to."""
        return self.aliases | self.lora_adapters | {self.model_name}

    def serves(self, model: str) -> bool:
        """True when it answers to this model name."""
        return model == self.model_name or model in self.aliases or model in self.lora_adapters

    @property
    def is_priced(self) -> bool:
        """True when the prices of both input and output are known, be they 0."""
        return self.cost_input_1m is not None and self.cost_output_1m is not None

    @property
    def max_cost_1m(self) -> float | None:
        """The higher of the prices of input and output, None when neither is known."""
        return max((price for price in (self.cost_input_1m, self.cost_output_1m) if price is not None), default=None)

    @property
    def api_base(self) -> str:
        """The path that stands where a client writes ``/v1``.

        A URL that already ends in the type's base (``https://api.openai.com/v1``) is taken as it is; any other path
        of the URL is put in front of it.
        """
        base = self.traits.api_base
        return self.endpoint.path if self.endpoint.path.endswith(base) else self.endpoint.path + base

    def upstream_path(self, path: str) -> str:
        """The path to ask this backend for, given a client's path (query included). Never changes the query."""
        if path == "/v1" or path.startswith(("/v1/", "/v1?")):
            return self.api_base + path[3:]
        return self.endpoint.path + path

    @property
    def rewrites_path(self) -> bool:
        """True when requests reach this backend under another path than the client's."""
        return self.upstream_path("/v1/models") != "/v1/models"
