"""What the admin API says of the running router."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict

from router_ext.decision_record import message_of_decision
from router_ext.model.decision import Decision
from router_ext.model.snapshot import Snapshot
from router_ext.version import __version__


@dataclass(frozen=True, slots=True)
class Status:
    """Sources of the answers, each read when it is asked for.

    ``ready`` is true once every backend has been probed and the processor serves; ``uptime_s`` counts seconds.
    """

    snapshot: Callable[[], Snapshot]
    decisions: Callable[[], Sequence[Decision]]
    ready: Callable[[], bool]
    uptime_s: Callable[[], float]

    def health(self) -> dict[str, object]:
        """``status`` is ``ok`` while a backend takes requests, else ``no_backend``."""
        states = self.snapshot().values()
        backends = [
            {
                "name": state.backend.name,
                "type": state.backend.type.value,
                "url": str(state.backend.endpoint),
                "model": state.backend.model_name,
                "health": state.health.value,
                "circuit_open": state.tripped,
                "active_requests": state.in_flight,
                "max_concurrent": state.backend.max_concurrent,
            }
            for state in states
        ]
        return {
            "status": "ok" if any(state.health != "down" for state in states) else "no_backend",
            "version": __version__,
            "uptime_seconds": round(self.uptime_s(), 3),
            "backends": backends,
        }

    def recent(self, limit: int) -> list[dict[str, object]]:
        """The last decisions, newest first, as ``router_ext.v1.Decision`` in JSON."""
        newest = list(self.decisions())[: -limit - 1 : -1]
        return [MessageToDict(message_of_decision(decision)) for decision in newest]
