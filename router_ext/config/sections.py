"""The sections of ``router.yaml`` as frozen values. Durations are seconds, sizes are bytes, money is US dollars."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from router_ext.model.affinity import Balancing
from router_ext.model.backend import Backend
from router_ext.model.gate import Checks
from router_ext.model.rule import Match, Rule
from router_ext.model.secret import Secret

PROCESSOR_SOCKET: Final = "run/processor.sock"
"""Default processor socket, relative to the configuration file's folder."""

DEFAULT_SERVICE: Final = "default"
"""The entry of ``budgets`` and ``rate_limits`` for services without one of their own."""

SOCKET_PATH_BYTES: Final = 107
"""The longest path of a Unix socket on Linux: ``sun_path`` without its last zero."""

ENVOY_DIR: Final = "envoy"
"""Default folder of the rendered Envoy files, relative to the configuration file's folder."""

DATA_DIR: Final = "data"
"""Default folder of what outlives a restart, relative to the configuration file's folder."""


@dataclass(frozen=True, slots=True)
class KvPinning:
    """``server.kv_pinning``: keep a conversation on the backend whose cache holds its prefix."""

    enabled: bool = False
    ttl_s: float = 1800.0
    max_entries: int = 10_000
    max_queue_ratio: float = 2.0


class StoreKind(StrEnum):
    """Where sessions are kept: in this process, or in a Redis that replicas share."""

    MEMORY = "memory"
    REDIS = "redis"


class SharedStateKind(StrEnum):
    """Whether replicas tell each other of pins, circuit breakers and spending, and by what."""

    NONE = "none"
    REDIS = "redis"


@dataclass(frozen=True, slots=True)
class Sessions:
    """``server.sessions``: conversations kept by the router.

    ``redis_url`` (redis, rediss or unix) is set exactly when ``store`` or ``Server.shared_state`` is Redis.
    ``encryption_key`` holds 32 bytes as 64 lower-case hexadecimal digits; None stores conversations as they are.
    ``max_bytes`` bounds the messages of all sessions together. While the store is Redis, ``store_timeout_s`` is below
    ``Server.message_timeout_s``.
    """

    enabled: bool = False
    store: StoreKind = StoreKind.MEMORY
    redis_url: Secret | None = None
    encryption_key: Secret | None = None
    ttl_s: float = 7200.0
    max_sessions: int = 1000
    max_bytes: int = 2_147_483_648
    max_context_tokens: int = 500_000
    store_timeout_s: float = 0.5


class UsageMode(StrEnum):
    """Where the token counts of a stream come from whose client did not ask for them: from the backend, which the
    router asks, or from what the model's answers had in tokens for their bytes.
    """

    EXACT = "exact"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A Unix socket, as an absolute path of at most ``SOCKET_PATH_BYTES`` bytes."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A TCP address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Address = UnixAddress | TcpAddress


@dataclass(frozen=True, slots=True)
class Server:
    """``server``: ports, limits and the switches of the features.

    ``default_timeout_s`` bounds a whole request that is not streamed; ``stream_idle_timeout_s`` bounds the silence
    between two pieces of any answer. ``processor_address`` is where Envoy finds router_ext, ``envoy_dir`` (absolute)
    holds the rendered Envoy files, of which the cluster file is rewritten when backends change, and ``data_dir``
    (absolute) what outlives a restart. With ``workers`` > 1 ``config.workers.worker_address`` tells the address of
    each, ``shared_state`` is Redis, and so is the store of sessions while they are enabled. ``usage`` is None where
    having a budget decides: exact, else an estimate.
    """

    port: int = 8050
    egress_port: int = 8051
    admin_host: str = "127.0.0.1"
    admin_port: int = 8052
    envoy_admin_port: int = 8053
    processor_address: Address = field(default_factory=lambda: UnixAddress(Path(PROCESSOR_SOCKET).absolute()))
    envoy_dir: Path = field(default_factory=lambda: Path(ENVOY_DIR).absolute())
    data_dir: Path = field(default_factory=lambda: Path(DATA_DIR).absolute())
    health_check_interval_s: float = 30.0
    default_timeout_s: float = 120.0
    stream_idle_timeout_s: float = 300.0
    message_timeout_s: float = 1.0
    max_body_bytes: int = 33_554_432
    max_connections: int = 10_000
    balancing: Balancing = Balancing.PIN
    kv_pinning: KvPinning = field(default_factory=KvPinning)
    queue_aware_routing: bool = False
    queue_scrape_interval_s: float = 5.0
    timezone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    sessions: Sessions = field(default_factory=Sessions)
    shared_state: SharedStateKind = SharedStateKind.NONE
    workers: int = 1
    usage: UsageMode | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """``defaults``: what applies where no rule does.

    ``fallback_chain`` holds backend names in order. ``max_attempts`` (≥ 1) bounds the backends that one request is sent
    to. ``first_token_timeout_s`` is how long a stream may be silent before its first token; None means no limit, and
    then an answer that has begun is not watched.
    """

    fallback_chain: tuple[str, ...] = ()
    max_attempts: int = 3
    first_token_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """One entry of ``budgets``. ``action`` is ``downgrade`` or ``reject``; the target is set for ``downgrade`` only.
    ``usage`` is None where ``Server.usage`` decides.
    """

    service: str
    daily_limit_usd: float
    action: str = "reject"
    downgrade_target: str = ""
    usage: UsageMode | None = None

    @property
    def limit_micro_usd(self) -> int:
        """Micro-dollars a day, at least 1. The shortest text that gives a float back is the number that was written."""
        return max(1, int(Decimal(str(self.daily_limit_usd)) * 1_000_000))


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One entry of ``rate_limits``: ``burst_size`` requests (≥ 1) at once, ``requests_per_second`` in the long run."""

    service: str
    requests_per_second: float
    burst_size: int


@dataclass(frozen=True, slots=True)
class DpoExport:
    """``quality_gate.dpo_export``: preference pairs as JSON lines. ``max_file_size_mb`` is in 1,000,000 bytes;
    ``max_files`` are kept beside the file that is written to. ``redact`` masks personal data and credentials.
    """

    enabled: bool = False
    output_path: Path = Path("dpo_training_data.jsonl")
    max_file_size_mb: int = 100
    max_files: int = 10
    redact: bool = False


class Streaming(StrEnum):
    """What happens to a streamed answer: it is held back and checked before the client sees any of it, or checked while
    it passes, or not checked.
    """

    HOLD = "hold"
    OBSERVE = "observe"
    SKIP = "skip"


class OnExhausted(StrEnum):
    """What the client gets when the fallback's answer is no better: the answer, or an error."""

    RETURN = "return"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class QualityGate:
    """``quality_gate``. ``mode`` is ``sequential`` or ``parallel``; ``sample_rate`` is 0..1.

    ``streaming`` is None where the request decides: its streamed answer is held when it came with a schema, else not
    checked. ``schema_timeout_s`` bounds the check of one answer against its schema.
    """

    enabled: bool = False
    mode: str = "sequential"
    fallback_backend: str = ""
    sample_rate: float = 1.0
    streaming: Streaming | None = None
    on_exhausted: OnExhausted = OnExhausted.RETURN
    schema_timeout_s: float = 1.0
    checks: Checks = field(default_factory=Checks)
    dpo_export: DpoExport = field(default_factory=DpoExport)


@dataclass(frozen=True, slots=True)
class AbTest:
    """One entry of ``ab_tests``. ``split_pct`` (0..100) is variant B's share; ``mode`` is ``split`` or ``shadow``.

    For shadows: ``max_inflight`` (≥ 1) bounds those that are under way, ``similarity_threshold`` (0..1) is what alike
    answers reach.
    """

    name: str
    match: Match
    variant_a: str
    variant_b: str
    split_pct: float
    active: bool = True
    mode: str = "split"
    max_inflight: int = 32
    similarity_threshold: float = 0.8


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """A whole, valid configuration. Names are unique and every reference between sections resolves.

    ``shadow_log_path`` (absolute) is the file of the answers that shadows compared, None for none. ``drained`` are
    names of backends that get no new requests; the file cannot say so.
    """

    server: Server = field(default_factory=Server)
    backends: tuple[Backend, ...] = ()
    rules: tuple[Rule, ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    budgets: tuple[Budget, ...] = ()
    rate_limits: tuple[RateLimit, ...] = ()
    quality_gate: QualityGate = field(default_factory=QualityGate)
    ab_tests: tuple[AbTest, ...] = ()
    shadow_log_path: Path | None = None
    drained: frozenset[str] = frozenset()

    def backend(self, name: str) -> Backend:
        """The backend called ``name``. Raises KeyError when there is none."""
        for backend in self.backends:
            if backend.name == name:
                return backend
        raise KeyError(name)

    @property
    def fail_open_backends(self) -> tuple[Backend, ...]:
        """Backends that Envoy may use without the router: in the fallback chain, not drained, without a key and without
        a path of their own, since nobody adds or rewrites anything then.
        """
        chain = (self.backend(name) for name in self.defaults.fallback_chain if name not in self.drained)
        return tuple(backend for backend in chain if backend.api_key is None and not backend.rewrites_path)

    @property
    def named_services(self) -> frozenset[str]:
        """Services that the configuration names literally: beside ``other`` the only values of a ``service`` label."""
        matches = [rule.match for rule in self.rules] + [test.match for test in self.ab_tests]
        literal = {match.service for match in matches if match.service and "*" not in match.service}
        limited = {budget.service for budget in self.budgets} | {limit.service for limit in self.rate_limits}
        return frozenset(literal | (limited - {DEFAULT_SERVICE}))
