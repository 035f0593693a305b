"""Fields of the ``server`` section."""

from typing import Final

from router_ext.config import url
from router_ext.config.document import Mapping
from router_ext.config.reading import Reading
from router_ext.config.scalars import boolean, duration, integer, local_path, member, number, size, time_zone
from router_ext.config.section import Field, Section, Values, below
from router_ext.config.sections import (
    DATA_DIR,
    ENVOY_DIR,
    PROCESSOR_SOCKET,
    KvPinning,
    Server,
    SharedStateKind,
    TcpAddress,
    UsageMode,
)
from router_ext.config.session_store import SESSIONS, check_redis_url, check_store_timeout
from router_ext.config.workers import MAX_WORKERS, check_workers, worker_ports
from router_ext.model.affinity import Balancing

_PORT: Final = integer(1, 65535)
_PORTS: Final = ("port", "egress_port", "admin_port", "envoy_admin_port")
_MAX_BODY_BYTES: Final = 2**30
_MAX_CONNECTIONS: Final = 1_000_000
# Envoy's max_message_timeout is an hour.
_MAX_MESSAGE_TIMEOUT_S: Final = 3600.0

KV_PINNING: Final = Section(
    KvPinning,
    (
        Field("enabled", boolean(), "Keep a conversation on the backend whose cache holds its prefix."),
        Field("ttl", duration(), "How long an unused pin lives.", "ttl_s"),
        Field("max_entries", integer(1), "Most prefixes remembered."),
        Field("max_queue_ratio", number(0, 1e6, above=True), "Largest load of a pinned backend against the mean."),
    ),
)


def _relate(values: Values, mapping: Mapping, reading: Reading) -> None:
    _distinct_ports(values, mapping, reading)
    _distinct_worker_ports(values, mapping, reading)
    check_store_timeout(values, mapping, reading)
    check_redis_url(values, mapping, reading)
    check_workers(values, mapping, reading)


def _distinct_ports(values: Values, mapping: Mapping, reading: Reading) -> None:
    users: dict[object, str] = {}
    for key in (key for key in _PORTS if key in values):
        other = users.setdefault(values[key], key)
        if other != key:
            _report_clash(key, other, mapping, reading)


def _report_clash(key: str, other: str, mapping: Mapping, reading: Reading) -> None:
    """The problem stands at a key that is written, since the other port may be a default."""
    node = mapping.entries.get(key)
    place = node or mapping.entries.get(other) or Mapping(below(mapping, key), mapping.line)
    reading.problem(place, f"the same port as {below(mapping, other if node else key)}")


def _distinct_worker_ports(values: Values, mapping: Mapping, reading: Reading) -> None:
    """A TCP address of the processor is always written: the default is a Unix socket."""
    address, workers = values.get("processor_address"), values.get("workers")
    if not isinstance(address, TcpAddress):
        return
    users = {values[key]: key for key in reversed(_PORTS) if key in values}
    for worker, port in enumerate(worker_ports(address, workers if isinstance(workers, int) else 1)):
        if port in users:
            clash = f"port {port} of worker {worker} is" if worker else "the same port as"
            reading.problem(mapping.entries["processor_address"], f"{clash} {below(mapping, users[port])}")


SERVER: Final = Section(
    Server,
    (
        Field("port", _PORT, "Port that clients use."),
        Field("egress_port", _PORT, "Loopback port for the router's own calls to backends."),
        Field("admin_host", url.host(), "Host that the admin API listens on."),
        Field("admin_port", _PORT, "Port of the admin API."),
        Field("envoy_admin_port", _PORT, "Loopback port of Envoy's own admin page."),
        Field(
            "processor_address",
            url.address(),
            "Where Envoy finds the router.",
            default=f"unix:{PROCESSOR_SOCKET}",
        ),
        Field("envoy_dir", local_path(), "Folder of the rendered Envoy files.", default=ENVOY_DIR),
        Field("data_dir", local_path(), "Folder of what outlives a restart: what calls cost.", default=DATA_DIR),
        Field("health_check_interval", duration(), "Time between two probes of a backend.", "health_check_interval_s"),
        Field("default_timeout", duration(), "Longest request that is not streamed.", "default_timeout_s"),
        Field("stream_idle_timeout", duration(), "Longest silence within an answer.", "stream_idle_timeout_s"),
        Field(
            "message_timeout",
            duration(_MAX_MESSAGE_TIMEOUT_S),
            "How long Envoy waits for the router before it goes on without it.",
            "message_timeout_s",
        ),
        Field("max_body_bytes", size(_MAX_BODY_BYTES), "Largest request or held answer."),
        Field("max_connections", integer(1, _MAX_CONNECTIONS), "Most client connections."),
        Field("balancing", member(Balancing), "How requests are spread while `kv_pinning` is enabled."),
        Field("kv_pinning", KV_PINNING, "Prefix pinning."),
        Field("queue_aware_routing", boolean(), "Prefer backends with short queues."),
        Field("queue_scrape_interval", duration(), "Time between two queue readings.", "queue_scrape_interval_s"),
        Field("timezone", time_zone(), "Where the day begins for which spending is counted."),
        Field("sessions", SESSIONS, "Conversations kept by the router."),
        Field(
            "shared_state",
            member(SharedStateKind),
            "Whether replicas tell each other of pins, circuit breakers and spending, through the Redis of "
            "`sessions.redis_url`.",
        ),
        Field("workers", integer(1, MAX_WORKERS), "Processes that answer Envoy."),
        Field("usage", member(UsageMode), "Token counts of streams that do not ask for them."),
    ),
    relate=_relate,
)
