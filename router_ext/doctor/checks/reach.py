"""Can both sides be asked, and are they what they should be?"""

from collections.abc import Iterator, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.state import State, Unreadable

MAX_SKEW_S: Final = 5.0
OLDEST_ENVOY: Final = (1, 40)
"""The version on which the generated configuration is measured."""


def envoy_admin(state: State) -> Sequence[Finding]:
    """Envoy's admin page answers, and Envoy is live."""
    if isinstance(state.envoy, Unreadable):
        port = state.config.server.envoy_admin_port
        wrong = f"Envoy's admin page at {state.envoy.url} cannot be read: {state.envoy.reason}"
        return [Finding(wrong, f"start Envoy, or say where it is: --envoy URL; its port is {port}")]
    if state.envoy.state != "LIVE":
        wrong = f"Envoy is {state.envoy.state or 'in no known state'}, not LIVE"
        return [Finding(wrong, "wait for its start to end; its log names what it waits for")]
    return []


def envoy_version(state: State) -> Sequence[Finding] | None:
    """Not older than what was measured."""
    if state.running is None:
        return None
    version = state.running.version
    if _numbers(version) >= OLDEST_ENVOY:
        return []
    oldest = ".".join(map(str, OLDEST_ENVOY))
    return [Finding(f"Envoy is version {version or 'unknown'}", f"run Envoy {oldest} or later")]


def _numbers(version: str) -> tuple[int, ...]:
    """The leading whole numbers of ``1.40.0-dev``; none for something else."""
    parts = version.partition("-")[0].split(".")
    return tuple(int(part) for part in parts[:2] if part.isascii() and part.isdigit() and len(part) < 10)


def router_admin(state: State) -> Sequence[Finding]:
    """The router's admin API answers, and the router is ready."""
    if isinstance(state.router, Unreadable):
        wrong = f"the router's admin API at {state.router.url} cannot be read: {state.router.reason}"
        return [Finding(wrong, "start it: router-ext serve FILE; or say where it is: --admin URL")]
    if not state.router.ready:
        return [
            Finding("the router is not ready", "wait for its first probes; a draining router has to be started anew")
        ]
    return []


def router_version(state: State) -> Sequence[Finding] | None:
    """The running router and this program, which knows what to expect, are one version."""
    if state.answering is None:
        return None
    running = state.answering.version
    if running == state.version:
        return []
    wrong = f"the router that runs is version {running or 'unknown'}, this program is {state.version}"
    return [Finding(wrong, "restart the router, or run the router-ext doctor of its version")]


def clock_skew(state: State) -> Sequence[Finding] | None:
    """Envoy, the router and this machine agree on the time."""
    clocks = list(_clocks(state))
    if not clocks:
        return None
    return [
        Finding(
            f"the clock of {who} is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's",
            "set the clocks by NTP on every machine: timedatectl set-ntp true",
        )
        for who, ahead_s in clocks
        if abs(ahead_s) > MAX_SKEW_S
    ]


def _clocks(state: State) -> Iterator[tuple[str, float]]:
    if state.running is not None and state.running.ahead_s is not None:
        yield "Envoy", state.running.ahead_s
    if state.answering is not None and state.answering.ahead_s is not None:
        yield "the router", state.answering.ahead_s
