"""GATE-16: a streamed answer turned out bad at its end, when its headers and chunks had long gone out."""

import asyncio
from contextlib import aclosing
from typing import Final

import pytest

from router_ext.config.sections import OnExhausted, Streaming
from router_ext.stream.effects import RelayBody, RelayHead
from router_ext.stream.events import RequestHead
from tests.fakes.domain import head
from tests.fakes.rig import EngineRig
from tests.unit.engine.gated import STAND_IN, WITH_SCHEMA, asked_stream, body_of, calls, gated, gated_rig, streams
from tests.unit.engine.relays import STREAM, Acting, begun

BAD: Final = streams('{"a":', "1,", '"b":', "2,", '"c"')
"""Five chunks that are no JSON in the end, as only the last one shows."""

BETTER: Final = streams('{"a":', "1}")


def _rig(streaming: Streaming | None, on_exhausted: OnExhausted = OnExhausted.RETURN) -> EngineRig:
    rig = gated_rig(gated(streaming=streaming, on_exhausted=on_exhausted))
    rig.dispatcher.answer("a", BAD)
    rig.dispatcher.answer("b", BETTER)
    return rig


@pytest.mark.parametrize(
    ("streaming", "head_"), [(None, WITH_SCHEMA), (Streaming.HOLD, WITH_SCHEMA), (Streaming.HOLD, head())]
)
async def test_a_held_stream_is_replaced_before_anything_of_it_went_out(
    streaming: Streaming | None, head_: RequestHead
) -> None:
    """While the bad stream comes, and while the fallback's does, the client has neither headers nor a chunk."""
    rig = _rig(streaming)
    out: list[RelayHead | RelayBody] = []
    seen: list[int] = []
    for name, answer in (("a", BAD), ("b", BETTER)):
        acting = Acting(answer.status, answer.headers, answer.body, acts=lambda: seen.append(len(out)))
        rig.dispatcher.answers[name].clear()
        rig.dispatcher.answer(name, acting)
    async with aclosing(rig.engine.relay(await begun(rig, STREAM, head_), STAND_IN)) as parts:
        async for part in parts:
            out.append(part)  # noqa: PERF401 - what is out by when is what counts
    assert seen == [0] * (len(BAD.body) + len(BETTER.body))
    first, *bodies = out
    assert isinstance(first, RelayHead)
    assert dict(first.edits.set)["x-kronaxis-quality"] == "fallback"
    assert b"".join(body.data for body in bodies if isinstance(body, RelayBody)) == body_of(BETTER)
    assert rig.telemetry.gated == [("fallback", "invalid_json")]


async def test_a_held_stream_can_still_become_an_error() -> None:
    """Nothing went out, so the status is free."""
    rig = _rig(Streaming.HOLD, OnExhausted.ERROR)
    rig.dispatcher.answers["b"].clear()
    rig.dispatcher.answer("b", BAD)
    told = await asked_stream(rig)
    assert (told.status, told.headers["content-type"]) == (502, "application/json")


@pytest.mark.parametrize("on_exhausted", list(OnExhausted))
async def test_an_observed_stream_goes_out_as_it_comes_and_is_only_counted(on_exhausted: OnExhausted) -> None:
    """Whatever the gate would do with others: the client gets all of it, nobody else is asked, and there is no pair."""
    rig = _rig(Streaming.OBSERVE, on_exhausted)
    told = await asked_stream(rig)
    async with asyncio.timeout(5):
        while not rig.telemetry.gated:  # noqa: ASYNC110 - the judgement is nobody's to wait for
            await asyncio.sleep(0)
    assert (told.status, told.body) == (200, body_of(BAD))
    assert "x-kronaxis-quality" not in told.headers
    assert calls(rig) == ["a"]
    assert rig.telemetry.gated == [("failed", "invalid_json")]
    assert rig.pairs.rescues == []
