"""How busy the backends are, in the admin API."""

import math

from fastapi import APIRouter

from router_ext.admin.operations import Live, Source
from router_ext.admin.shapes.figures import EngineQueue, Queues, QueueShown
from router_ext.engine.pool import Slot
from router_ext.model.snapshot import BackendState


def queue_routes(source: Source) -> APIRouter:
    """The route."""
    router = APIRouter(prefix="/api", tags=["figures"])

    @router.get("/queue", response_model=Queues)
    async def show_queues() -> Queues:
        """What each backend has to do, as the router counts it and as its engine says."""
        operations = source()
        return queues_shown(operations.live, operations.running.loaded.config.drained)

    return router


def queues_shown(live: Live, drained: frozenset[str]) -> Queues:
    """Every backend as it is now."""
    live.snapshot()
    now = live.clock.monotonic()
    return Queues(queues=[_shown(name, slot, now, drained=name in drained) for name, slot in live.slots().items()])


def _shown(name: str, slot: Slot, now: float, *, drained: bool) -> QueueShown:
    state = slot.state
    return QueueShown(
        backend=name,
        in_flight=state.in_flight,
        max_concurrent=state.backend.max_concurrent,
        engine=_engine(slot, now),
        load=state.load,
        prefill_queued=state.prefill.queued,
        expected_wait_seconds=_wait(state, now),
        drained=drained,
        paused_seconds=round(max(0.0, state.paused_until - now), 3),
    )


def _engine(slot: Slot, now: float) -> EngineQueue | None:
    load = slot.queue.state(now, math.inf)
    if load is None:
        return None
    age_s = round(load.age_s, 3)
    return EngineQueue(running=load.reading.running, waiting=load.reading.waiting, age_seconds=age_s)


def _wait(state: BackendState, now: float) -> float | None:
    """A rate that is not learned yet gives no time. Nothing is waited for less than no time."""
    if not state.prefill.rate:
        return None
    return round(max(0.0, state.prefill.wait_s(now, state.prefill.rate)), 3)
