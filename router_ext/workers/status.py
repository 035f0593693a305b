"""The admin API over all workers: what they count is added, what they all know one of them tells."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from router_ext.admin.status import Json
from router_ext.telemetry.metrics import BUDGET_SPENT, SPENT_TODAY, BackendCollector
from router_ext.version import __version__
from router_ext.workers.client import WorkerAnswer, ask_all
from router_ext.workers.merge import merged_ab_tests, merged_budgets, merged_decisions, merged_gauges, merged_health
from router_ext.workers.place import WorkerFolder
from router_ext.workers.processes import WorkerProcess

_READ_AT_SCRAPE: Final = (*BackendCollector.names(), SPENT_TODAY, BUDGET_SPENT)
"""Gauges that no file of prometheus-client holds. Of what was spent each worker knows the whole, up to a second ago."""


@dataclass(frozen=True, slots=True)
class WorkersStatus:
    """Implements ``admin.status.StatusSource``.

    ``stopping`` is true from the first signal on. ``registry`` holds the metrics of the supervisor itself.
    """

    folder: WorkerFolder
    workers: Callable[[], Sequence[WorkerProcess]]
    stopping: Callable[[], bool]
    uptime_s: Callable[[], float]
    registry: CollectorRegistry

    async def health(self) -> Json:
        """As of one process, with ``workers``; see ``merged_health``."""
        answers, ready = await self._ask("/health"), await self._ask("/ready")
        workers = [
            {
                "worker": worker.index,
                "pid": worker.pid,
                "ready": worker.index in ready and ready[worker.index].status == 200,
                "restarts": worker.restarts,
            }
            for worker in self.workers()
        ]
        merged = merged_health(answer.json() for answer in answers.values())
        about = {"version": __version__, "uptime_seconds": round(self.uptime_s(), 3), "workers": workers}
        return {"status": merged["status"], **about, "backends": merged["backends"]}

    async def ready(self) -> bool:
        """True while one worker routes."""
        answers = await self._ask("/ready")
        return not self.stopping() and any(answer.status == 200 for answer in answers.values())

    async def recent(self, limit: int) -> list[Json]:
        """The newest of all workers."""
        answers = await self._ask(f"/api/decisions?limit={limit}")
        return merged_decisions((answer.json()["decisions"] for answer in answers.values()), limit)

    async def metrics(self, names: Sequence[str]) -> bytes:
        """Counters and histograms of all workers, also of those that died; gauges of those that answer."""
        query = "&".join(f"name[]={name}" for name in _READ_AT_SCRAPE)
        answers = await self._ask(f"/metrics?{query}")
        gauges = merged_gauges(answer.body.decode() for answer in answers.values())
        registry = CollectorRegistry(auto_describe=bool(names))
        MultiProcessCollector(registry, path=str(self.folder.metrics))  # type: ignore[no-untyped-call]
        registry.register(_Gauges(gauges))
        text: bytes = generate_latest(registry.restricted_registry(names) if names else registry)
        own = self.registry.restricted_registry(names) if names else self.registry
        return text + generate_latest(own)

    async def _ask(self, target: str) -> dict[int, WorkerAnswer]:
        return await ask_all(self.folder, self._indexes(), target)

    def _indexes(self) -> list[int]:
        return [worker.index for worker in self.workers()]

    async def families(self, names: Sequence[str]) -> Iterable[Metric]:
        """See ``admin.status.StatusSource``."""
        return text_string_to_metric_families((await self.metrics(names)).decode())

    def uptime(self) -> float:
        """See ``admin.status.StatusSource``."""
        return self.uptime_s()

    async def budgets(self) -> list[Json]:
        """``/api/budgets`` of all workers: see ``merged_budgets``."""
        answers = await self._ask("/api/budgets")
        return merged_budgets(answer.json()["budgets"] for answer in answers.values())

    async def ab_tests(self) -> list[Json]:
        """``/api/ab-tests`` of all workers: see ``merged_ab_tests``."""
        answers = await self._ask("/api/ab-tests")
        return merged_ab_tests(answer.json()["ab_tests"] for answer in answers.values())


class _Gauges(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
