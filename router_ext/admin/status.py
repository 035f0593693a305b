"""What the admin API says of the running router."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, Metric, generate_latest

from router_ext.decisions.record import json_of_message, message_of_decision
from router_ext.model.decision import Decision
from router_ext.model.decision_filter import DecisionFilter
from router_ext.model.snapshot import Snapshot
from router_ext.version import __version__

Json = dict[str, Any]


class StatusSource(Protocol):
    """Where the answers come from: this process, or the workers that it watches."""

    async def health(self) -> Json:
        """``status``, which is ``ok`` while a backend takes requests, ``version``, ``uptime_seconds`` and
        ``backends``.
        """
        ...

    async def ready(self) -> bool:
        """True while requests are routed."""
        ...

    async def recent(self, limit: int, wanted: DecisionFilter) -> list[Json]:
        """Up to ``limit`` decisions that are ``wanted``, newest first, as ``router_ext.v1.Decision`` in JSON."""
        ...

    async def metrics(self, names: Sequence[str]) -> bytes:
        """Prometheus text; of the families that hold a sample of one of ``names``, of all without names."""
        ...

    async def families(self, names: Sequence[str]) -> Iterable[Metric]:
        """The families that hold a sample of one of ``names``."""
        ...

    def uptime(self) -> float:
        """Seconds since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Status:
    """This process. Each source is read when it is asked for.

    ``is_ready`` is true once every backend has been probed and the processor serves; ``uptime_s`` counts seconds.
    """

    snapshot: Callable[[], Snapshot]
    decisions: Callable[[], Sequence[Decision]]
    is_ready: Callable[[], bool]
    uptime_s: Callable[[], float]
    registry: CollectorRegistry

    async def health(self) -> Json:
        """See ``StatusSource``; otherwise ``status`` is ``no_backend``."""
        states = self.snapshot().values()
        backends = [
            {
                "name": state.backend.name,
                "type": state.backend.type.value,
                "url": str(state.backend.endpoint),
                "model": state.backend.model_name,
                "health": state.health.value,
                "circuit_open": state.tripped,
                "drained": state.drained,
                "active_requests": state.in_flight,
                "max_concurrent": state.backend.max_concurrent,
            }
            for state in states
        ]
        return {
            "status": "ok" if any(state.takes_requests for state in states) else "no_backend",
            "version": __version__,
            "uptime_seconds": round(self.uptime_s(), 3),
            "backends": backends,
        }

    async def ready(self) -> bool:
        """See ``StatusSource``."""
        return self.is_ready()

    async def recent(self, limit: int, wanted: DecisionFilter) -> list[Json]:
        """See ``StatusSource``."""
        newest = (decision for decision in reversed(tuple(self.decisions())) if wanted.matches(decision))
        shown: list[Json] = []
        for decision in islice(newest, limit):
            shown.append(json_of_message(message_of_decision(decision)))
            # Requests have their turn: one takes 1 ms to write with eight backends, and there may be a thousand.
            await asyncio.sleep(0)
        return shown

    async def metrics(self, names: Sequence[str]) -> bytes:
        """See ``StatusSource``."""
        return generate_latest(self.registry.restricted_registry(names) if names else self.registry)

    async def families(self, names: Sequence[str]) -> Iterable[Metric]:
        """See ``StatusSource``."""
        found: Iterable[Metric] = self.registry.restricted_registry(names).collect()
        return found

    def uptime(self) -> float:
        """See ``StatusSource``."""
        return self.uptime_s()
