"""What the counters of the two sides say of the traffic, and the health that each sees."""

from collections.abc import Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.state import Counters, State
from router_ext.envoygen.names import PROCESSOR_CLUSTER

FAILED_SHARE: Final = 0.01
"""Share of the streams since Envoy's start above which their failures are worth a warning."""

_BYPASSED: Final = "kronaxis_router_bypassed_total"
_RELOAD: Final = "kronaxis_router_config_last_reload_success"
_FAILED: Final = (".streams_failed", ".message_timeouts", ".failure_mode_allowed")


def processor_health(state: State) -> Sequence[Finding] | None:
    """Envoy sees the router as healthy, every worker of it."""
    if state.running is None or PROCESSOR_CLUSTER not in state.running.wiring.clusters:
        return None
    return [
        Finding(
            f"Envoy's health check of the router at {host.address} fails: requests pass it by",
            f"start the router, and copy `health_checks` of cluster {PROCESSOR_CLUSTER} from the rendered bootstrap",
        )
        for host in state.running.hosts.get(PROCESSOR_CLUSTER, ())
        if not host.healthy
    ]


def failing_open(state: State) -> Sequence[Finding] | None:
    """No request passes the router by while it is watched."""
    if state.running is None:
        return None
    counters = state.running.counters
    grown = {suffix[1:]: sum(map(counters.grown, _ext_proc(state, counters, suffix))) for suffix in _FAILED}
    if state.answering is not None:
        grown[_BYPASSED] = state.answering.counters.grown(_BYPASSED)
    told = ", ".join(f"{name} +{count:.0f}" for name, count in grown.items() if count)
    if not told:
        return []
    mend = "mend what is reported above; else look for `fault` in the router's log and for its CPU: it answers too late"
    return [Finding(f"streams to the router fail right now, within {counters.apart_s:g} s: {told}", mend)]


def failed_open(state: State) -> Sequence[Finding] | None:
    """Few requests have passed it by since Envoy started."""
    if state.running is None:
        return None
    counters = state.running.counters
    opened, failed = (
        sum(map(counters.total, _ext_proc(state, counters, suffix)))
        for suffix in (".streams_started", ".failure_mode_allowed")
    )
    if failed <= FAILED_SHARE * (opened + failed):
        return []
    mend = f"if the router was away, begin anew: curl -X POST http://127.0.0.1:{state.config.server.envoy_admin_port}"
    wrong = f"{failed:.0f} requests have passed the router by since Envoy started, beside {opened:.0f} that did not"
    return [Finding(wrong, f"{mend}/reset_counters")]


def _ext_proc(state: State, counters: Counters, suffix: str) -> list[str]:
    """The counters of ext_proc on the listeners for clients, of which each has a prefix of its own."""
    prefixes = tuple(f"http.{one.manager.at('stat_prefix').text}.ext_proc." for one in state.ingress)
    return [name for name in counters.ending(suffix) if name.startswith(prefixes)]


def backends(state: State) -> Sequence[Finding] | None:
    """Every backend takes requests."""
    if state.answering is None:
        return None
    return [
        Finding(
            f"backend {one.name} is {'down' if one.health == 'down' else 'set aside by its circuit breaker'}",
            f"look at {one.name} itself: the router asks its health_endpoint, and comes back to it alone",
        )
        for one in state.answering.backends
        if one.health == "down" or one.circuit_open
    ]


def configuration(state: State) -> Sequence[Finding] | None:
    """The router runs the file that was given."""
    if state.answering is None:
        return None
    findings = []
    if state.answering.counters.after.get(_RELOAD, 1.0) < 1:
        findings.append(Finding("the router refused the last change of its file", "router-ext check-config FILE"))
    running = {one.name for one in state.answering.backends}
    if missing := sorted({one.name for one in state.config.backends} - running):
        mend = "give doctor the router's own file, or let the router read it: touch FILE"
        findings.append(Finding(f"the router does not know these backends of the file: {', '.join(missing)}", mend))
    return findings
