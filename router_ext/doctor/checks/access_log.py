"""The access log entries by which the router learns how exchanges ended."""

from collections.abc import Iterator, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.node import Node
from router_ext.doctor.state import State
from router_ext.doctor.wiring import HttpListener

_GRPC: Final = "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig"
_STATS: Final = "access_logs.grpc_access_log"
_LOST: Final = "kronaxis_router_access_log_lost_total"


def loggers(state: State) -> Sequence[Finding] | None:
    """Each rendered gRPC logger is there, with its cluster and its filter."""
    if not state.ingress:
        return None
    return [finding for listener in state.ingress for finding in _loggers(listener, state.expected_ingress)]


def _loggers(listener: HttpListener, expected: HttpListener) -> Iterator[Finding]:
    running = {_cluster(one): one for one in _grpc(listener)}
    for wanted in _grpc(expected):
        cluster = _cluster(wanted)
        if cluster not in running:
            wrong = f"listener {listener.name} sends no access log entries to cluster {cluster}"
            yield Finding(wrong, f"copy the `access_log` entry for cluster {cluster} from the rendered bootstrap")
            continue
        needed = wanted.at("filter")
        if not running[cluster].at("filter").same_as(needed):
            mend = "copy `filter` from the rendered bootstrap" if needed.exists else "remove `filter`"
            wrong = f"the access logger for cluster {cluster} has another filter"
            yield Finding(wrong, f"access_log for cluster {cluster}: {mend}")


def _grpc(listener: HttpListener) -> tuple[Node, ...]:
    return tuple(one for one in listener.manager.at("access_log").each() if one.at("typed_config").is_type(_GRPC))


def _cluster(logger: Node) -> str:
    return logger.at("typed_config", "common_config", "grpc_service", "envoy_grpc", "cluster_name").text


def delivery(state: State) -> Sequence[Finding] | None:
    """Entries arrive."""
    if state.running is None or not any(_grpc(one) for one in state.ingress):
        return None
    counters = state.running.counters
    written, delivered = (counters.total(f"{_STATS}.{name}") for name in ("logs_written", "grpc_entries_flushed"))
    dropped = counters.grown(f"{_STATS}.logs_dropped")
    lost = state.answering.counters.grown(_LOST) if state.answering else 0.0
    mend = "look at cluster router-ext above, and at the router's log; entries wait for a second, then are dropped"
    if dropped or lost:
        apart = f"within {counters.apart_s:g} s"
        return [Finding(f"{dropped:.0f} entries were dropped and {lost:.0f} never came, {apart}", mend)]
    if written and not delivered:
        return [Finding(f"none of {written:.0f} entries has reached the router", mend)]
    return []
