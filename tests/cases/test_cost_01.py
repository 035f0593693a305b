"""COST-01: streams whose client did not ask for usage were recorded with 0 tokens, in effect free."""

from dataclasses import replace

import orjson
import pytest

from router_ext.config.sections import Server, UsageMode
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, record, router
from tests.fakes.rig import EngineRig
from tests.unit.engine.gated import STAND_IN
from tests.unit.engine.relays import DONE, LAST, ROLE, TOKEN, USAGE, begun, relayed, settled

REQUEST = {"model": "m-a", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def _rig(usage: UsageMode) -> EngineRig:
    return EngineRig(replace(router(backend("a", cost=1.0)), server=Server(usage=usage)))


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": None}, {"include_usage": True}),
        ({"stream_options": {}}, {"include_usage": True}),
        ({"stream_options": {"include_usage": False, "x": [1]}}, {"include_usage": True, "x": [1]}),
    ],
)
async def test_usage_is_forced_and_the_other_options_stay(more: dict[str, object], options: dict[str, object]) -> None:
    """The engine counts 9 and 1, which is what is booked."""
    rig = _rig(UsageMode.EXACT)
    rig.dispatcher.answer("a", event_stream(ROLE, TOKEN, LAST, USAGE, DONE))
    decision_id = await begun(rig, orjson.dumps(REQUEST | more))
    await relayed(rig, decision_id, STAND_IN)
    settled(rig, decision_id)
    (call,) = rig.dispatcher.calls
    assert orjson.loads(call.body) == REQUEST | {"stream_options": options}
    assert [micro_usd for _, _, _, micro_usd in rig.telemetry.charges] == [10]


@pytest.mark.parametrize("size", [1, 5726])
def test_without_it_usage_is_estimated_and_flagged(size: int) -> None:
    """Never 0 for an answer that is not empty."""
    rig = _rig(UsageMode.ESTIMATE)
    decision_id = rig.forward(orjson.dumps(REQUEST)).metadata["id"]
    rig.engine.first_token(decision_id)
    rig.engine.settle(record(decision_id, usage=None, response_bytes=size))
    usage = rig.telemetry.ends[0].outcome.usage
    assert usage is not None
    assert (usage.prompt_tokens >= 1, usage.completion_tokens >= 1) == (True, True)
    assert rig.telemetry.estimated == ["a"]
