"""What the engine needs from the outside, as Protocols. The shell provides them; tests bring their own."""

from typing import Protocol

from router_ext.model.decision import Decision
from router_ext.model.outcome import AccessRecord
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.model.snapshot import Health


class Clock(Protocol):
    """Two times: one to measure with, one to print."""

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...


class Telemetry(Protocol):
    """What happened, for metrics and logs. Every call is cheap and never raises."""

    def routed(self, decision: Decision) -> None:
        """A request was given to a backend."""
        ...

    def settled(self, decision: Decision, record: AccessRecord, ttft_s: float | None) -> None:
        """An exchange ended; called once for each decision that routed a request."""
        ...

    def pinned(self, backend: str, *, hit: bool) -> None:
        """A request was sent to a backend that is (``hit``) or is not expected to hold a prefix of its prompt."""
        ...

    def cache_reported(self, backend: str, predicted_tokens: int, cached_tokens: int) -> None:
        """An engine said how many prompt tokens its cache held; ``predicted_tokens`` were expected."""
        ...

    def scrape_errors(self, backend: str, count: int) -> None:
        """A metrics page had ``count`` (≥ 1) values that could not be used."""
        ...

    def lost(self, decision: Decision) -> None:
        """An exchange is gone from Envoy but its access log entry never came."""
        ...

    def refused(self, caller: Caller, rejection: Rejection) -> None:
        """router_ext answered a request with an error."""
        ...

    def bypassed(self, record: AccessRecord) -> None:
        """Envoy served a request that no decision belongs to."""
        ...

    def processed(self, seconds: float) -> None:
        """How long Envoy waited for router_ext in one exchange: the sum over its messages."""
        ...

    def fault(self, place: str, error: BaseException) -> None:
        """A bug surfaced at ``place``; Envoy was let go on without the router."""
        ...

    def headers_only(self) -> None:
        """Envoy did not show a body that routing needs: its body mode is one that cannot work."""
        ...

    def health_changed(self, backend: str, health: Health, cause: str) -> None:
        """A backend's health is another than before, or known for the first time."""
        ...

    def reloaded(self, digest: str) -> None:
        """A new configuration is in force."""
        ...

    def reload_refused(self, problem: str) -> None:
        """A changed configuration file was not taken over."""
        ...
