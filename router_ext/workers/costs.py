"""Costs in the admin API over all workers, which share a ledger, and have one of their own each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from router_ext.admin.status import Json
from router_ext.costs.days import Period
from router_ext.ports import Clock, LedgerError
from router_ext.workers.client import WorkerAnswer, WorkerAwayError, ask_all, ask_any
from router_ext.workers.merge_costs import merged_costs, merged_forecasts
from router_ext.workers.place import WorkerFolder
from router_ext.workers.processes import WorkerProcess

_OK = 200


@dataclass(frozen=True, slots=True)
class WorkersCosts:
    """Implements ``admin.costs.CostSource``. ``zone`` is that of the start; the workers follow a reload."""

    folder: WorkerFolder
    workers: Callable[[], Sequence[WorkerProcess]]
    clock: Clock
    zone: ZoneInfo

    async def costs(self, period: Period) -> Json:
        """What any worker knows of all routers; while none can reach the others, the sum over the workers. Raises
        LedgerError when one is missing from that: less than all workers know would look like all.
        """
        target = f"/api/costs?period={period.value}"
        told = await self._ask_any(target)
        if told is not None and told["complete"]:
            return told
        answers = await self._ask(target)
        if len(answers) < len(self.workers()):
            raise LedgerError("a worker does not answer")
        return merged_costs(answer.json() for answer in answers)

    async def forecasts(self) -> Json:
        """Every worker knows what all of them spent; of one that is away the last hour is missing."""
        answers = await self._ask("/api/costs/forecast")
        return merged_forecasts((answer.json() for answer in answers), self.clock.wall(), self.zone)

    async def _ask_any(self, target: str) -> Json | None:
        """None when nobody answers well."""
        indexes = [worker.index for worker in self.workers()]
        try:
            answer = await ask_any(self.folder, indexes, target)
        except WorkerAwayError:
            return None
        told: Json | None = answer.json() if answer.status == _OK else None
        return told

    async def _ask(self, target: str) -> list[WorkerAnswer]:
        indexes = [worker.index for worker in self.workers()]
        answers = await ask_all(self.folder, indexes, target)
        return [answer for answer in answers.values() if answer.status == _OK]
