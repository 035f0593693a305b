"""The admin API over all workers: what they count is added, what they all know one of them tells."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from msgspec.structs import asdict
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from router_ext.admin.refusal import refusal
from router_ext.admin.status import Json
from router_ext.model.decision_filter import DecisionFilter
from router_ext.telemetry.metrics import BackendCollector
from router_ext.version import __version__
from router_ext.workers.client import WorkerAnswer, WorkerAwayError, ask_all, ask_any
from router_ext.workers.merge import merged_ab_tests, merged_budgets, merged_decisions, merged_gauges, merged_health
from router_ext.workers.place import WorkerFolder
from router_ext.workers.processes import WorkerProcess

_RETRY_AFTER_S: Final = 2


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

    async def recent(self, limit: int, wanted: DecisionFilter) -> list[Json]:
        """The newest of all workers."""
        query = urlencode({"limit": limit, **asdict(wanted)}, errors="surrogatepass")
        answers = await self._ask(f"/api/decisions?{query}")
        return merged_decisions((answer.json()["decisions"] for answer in answers.values()), limit)

    async def metrics(self, names: Sequence[str]) -> bytes:
        """Counters and histograms of all workers, also of those that died; gauges of those that answer."""
        query = "&".join(f"name[]={name}" for name in BackendCollector.names())
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

    def session_routes(self) -> APIRouter:
        """``/api/sessions``, answered by any worker: their store is one."""
        router = APIRouter(prefix="/api")

        @router.api_route("/sessions", methods=["GET", "DELETE"])
        async def sessions(request: Request) -> Response:
            """Sessions, most recently used first (GET), or destroys one (DELETE). Holds no message."""
            target = f"{request.url.path}?{request.url.query}"
            try:
                answer = await ask_any(self.folder, self._indexes(), target, request.method)
            except WorkerAwayError:
                return _no_worker()
            return _forwarded(answer)

        return router

    def budget_routes(self) -> APIRouter:
        """``/api/budgets`` of all workers: see ``merged_budgets``."""
        router = APIRouter(prefix="/api")

        @router.get("/budgets")
        async def budgets() -> JSONResponse:
            """Every service that has a limit: what it has spent today, and what its open calls may cost."""
            answers = await self._ask("/api/budgets")
            return JSONResponse({"budgets": merged_budgets(answer.json()["budgets"] for answer in answers.values())})

        return router

    def ab_test_routes(self) -> APIRouter:
        """``/api/ab-tests`` of all workers: see ``merged_ab_tests``."""
        router = APIRouter(prefix="/api")

        @router.get("/ab-tests")
        async def ab_tests() -> JSONResponse:
            """Every A/B test with both variants' statistics."""
            answers = await self._ask("/api/ab-tests")
            return JSONResponse({"ab_tests": merged_ab_tests(answer.json()["ab_tests"] for answer in answers.values())})

        return router


class _Gauges(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _forwarded(answer: WorkerAnswer) -> Response:
    headers = {} if answer.retry_after is None else {"retry-after": answer.retry_after}
    return Response(answer.body, answer.status, headers, media_type=answer.content_type)


def _no_worker() -> JSONResponse:
    headers = {"retry-after": str(_RETRY_AFTER_S)}
    return refusal(503, "no_worker", "No worker of the router answers.", headers)
