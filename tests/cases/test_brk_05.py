"""BRK-05: when every backend asked for a pause, the refusal knows when the first of them comes back."""

from contextlib import aclosing

import orjson

from router_ext.model.decision import NoChoice
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from router_ext.stream.effects import Answer, Forward, RelayHead
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, request, router, snapshot
from tests.fakes.rig import BODY, EngineRig

NOW = 1000.0


def test_the_refusal_has_the_end_of_the_shorter_pause() -> None:
    """Two pauses, of 50 s and of 30 s: a client that waits 30 s is served."""
    long = BackendState(backend("a"), Health.HEALTHY, paused_until=NOW + 50)
    short = BackendState(backend("b"), Health.HEALTHY, paused_until=NOW + 30)
    pipeline = Pipeline([], ["a", "b"])
    refused = pipeline.route(Asked(request(), snapshot(long, short), now=NOW))
    assert isinstance(refused, NoChoice)
    assert refused.paused_until == NOW + 30
    assert not isinstance(pipeline.route(Asked(request(), snapshot(long, short), now=NOW + 30)), NoChoice)


async def test_the_client_is_told_when_to_come_back() -> None:
    """Both backends answered 503, with 50 s and with 30 s: the next client gets 503 with ``Retry-After: 30`` and an
    error of the usual form, and no backend is asked. 30 s later it is served.
    """
    rig = EngineRig(router(backend("a"), backend("b")))
    rig.dispatcher.answer("b", CannedAnswer(503, (("retry-after", "30"),)))
    first = await rig.engine.plan(head(), BODY)
    assert isinstance(first, Forward)
    parts = rig.engine.relay(first.metadata["id"], ResponseHeaders(503, "", False, retry_after="50"))
    async with aclosing(parts):
        heads = [part.status async for part in parts if isinstance(part, RelayHead)]
    assert heads == [503]
    refused = await rig.engine.plan(head(), BODY)
    assert isinstance(refused, Answer)
    assert (refused.status, dict(refused.headers)["retry-after"]) == (503, "30")
    error = orjson.loads(refused.body)["error"]
    assert (error["type"], error["code"], error["param"]) == ("service_unavailable", "no_backend", None)
    assert len(rig.dispatcher.calls) == 1
    rig.clock.advance(30)
    served = await rig.engine.plan(head(), BODY)
    assert isinstance(served, Forward)
    assert served.metadata["backend"] == "b"
