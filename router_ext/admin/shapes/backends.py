"""Backends."""

from typing import Literal

from pydantic import Field

from router_ext.admin.shapes.base import Given, Shown

Origin = Literal["file", "api"]
HealthWord = Literal["healthy", "degraded", "down"]
Duration = str | int | float


class BreakerSpec(Given):
    """``backends[].circuit_breaker``."""

    error_threshold: int | None = Field(default=None, ge=1, description="Errors that open the breaker.")
    window_seconds: Duration | None = Field(default=None, description="Time in which they are counted: 10, or '10s'.")


class BackendSpec(Given):
    """A backend with the keys of router.yaml; a key that is left out has the default of the file."""

    name: str = Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    url: str = Field(min_length=1, max_length=2048, description="Where it listens: http://host:8000.")
    type: Literal["vllm", "sglang", "llamacpp", "openai", "gemini", "ollama", "anthropic"]
    model_name: str = Field(min_length=1, max_length=256, description="What it calls its model.")
    aliases: list[str] = Field(default=[], max_length=1000)
    lora_adapters: list[str] = Field(default=[], max_length=1000)
    capabilities: list[str] = Field(default=[], max_length=1000)
    max_concurrent: int | None = Field(default=None, ge=1, description="Most requests in flight from this router.")
    cost_input_1m: float | None = Field(default=None, ge=0, description="US dollars per 1,000,000 prompt tokens.")
    cost_cached_input_1m: float | None = Field(default=None, ge=0)
    cost_output_1m: float | None = Field(default=None, ge=0)
    api_key: str | None = Field(
        default=None,
        max_length=256,
        description="env:NAME of a variable of the router whose name ends in _API_KEY; never the key itself.",
    )
    health_endpoint: str | None = Field(default=None, max_length=1024, description="Path of the health probe.")
    circuit_breaker: BreakerSpec | None = None


class BreakerShown(Shown):
    """When a backend is left alone for a while."""

    error_threshold: int
    window_seconds: float


class BackendConfig(Shown):
    """A backend as it is configured, defaults included."""

    name: str
    type: str
    url: str
    model: str
    aliases: list[str]
    lora_adapters: list[str]
    capabilities: list[str]
    max_concurrent: int = Field(description="Most requests in flight from this router.")
    cost_input_1m: float | None = Field(description="US dollars per 1,000,000 tokens; null where it is not known.")
    cost_cached_input_1m: float | None
    cost_output_1m: float | None
    api_key: str | None = Field(description="env:NAME, *** for a key in the file, null without one.")
    health_endpoint: str = Field(description="Path of the health probe; a query is shown as ***.")
    circuit_breaker: BreakerShown | None
    origin: Origin = Field(description="Whether router.yaml or the API says it.")
    drained: bool = Field(description="True: it gets no new requests.")


class BackendShown(BackendConfig):
    """A backend with its state at this instant."""

    health: HealthWord
    circuit_open: bool
    paused_seconds: float = Field(ge=0, description="How long it wants no requests yet; 0 for none.")
    active_requests: int = Field(ge=0, description="Requests of this router in flight.")
    load_elsewhere: float = Field(ge=0, description="Requests that it has beside them, as far as it says.")
    ttft_p50_ms: float | None = Field(description="Median time to first token; null without samples.")
    ttft_p95_ms: float | None


class Backends(Shown):
    """Every backend, in the configuration's order."""

    backends: list[BackendShown]
