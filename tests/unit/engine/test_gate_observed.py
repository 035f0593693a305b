"""Streams that pass at once and are looked at afterwards."""

import asyncio
from contextlib import aclosing

import pytest

from router_ext.config.sections import Streaming
from router_ext.engine import gate as gating
from router_ext.model.gate import Checks
from router_ext.stream.effects import RelayBody
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.rig import EngineRig
from tests.unit.engine.gated import (
    BAD,
    GOOD,
    STAND_IN,
    WITH_SCHEMA,
    asked,
    asked_stream,
    body_of,
    calls,
    error,
    gated,
    gated_rig,
    quality,
    says,
    streams,
)
from tests.unit.engine.relays import ROLE, STREAM, TOKEN, Acting, begun, relayed


def _rig(*answers: CannedAnswer | None, **changes: object) -> EngineRig:
    rig = gated_rig(gated(streaming=Streaming.OBSERVE, **changes))  # type: ignore[arg-type]
    rig.dispatcher.answer("a", *answers)
    return rig


async def _counted(rig: EngineRig, number: int = 1) -> list[tuple[str, str]]:
    """What is counted, once so many answers are."""
    async with asyncio.timeout(5.0):
        while len(rig.telemetry.gated) < number:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)
    return rig.telemetry.gated


async def _all_judged(rig: EngineRig) -> None:
    async with asyncio.timeout(5.0):
        while rig.engine._gate._observed:  # noqa: ASYNC110 - the set has no event of its own
            await asyncio.sleep(0)


@pytest.mark.parametrize(("text", "counted"), [(GOOD, ("passed", "")), (BAD, ("failed", "invalid_json"))])
async def test_an_observed_stream_passes_good_or_bad_and_is_counted(text: str, counted: tuple[str, str]) -> None:
    """The fallback is not asked, and the client is told nothing: its head goes before anybody can know."""
    answer = streams(text)
    rig = _rig(answer)
    told = await asked_stream(rig)
    assert (told.body, quality(told), calls(rig)) == (body_of(answer), ("", "a", ""), ["a"])
    assert await _counted(rig) == [counted]
    assert (rig.pairs.rescues, rig.telemetry.verdicts[0].value) == ([], "valid" if text is GOOD else "not_json")


async def test_an_observed_stream_passes_piece_by_piece() -> None:
    """Each as soon as it is there, from the first token on."""
    log = list[str]()
    kind = (("content-type", "text/event-stream"),)
    pieces = streams(GOOD).body
    rig = _rig(Acting(200, kind, pieces, acts=lambda: log.append("in")))
    async with aclosing(rig.engine.relay(await begun(rig, STREAM), STAND_IN)) as parts:
        async for part in parts:
            if isinstance(part, RelayBody) and part.data:
                log.append("out")
    assert log == ["in", "in", "out", *(["in", "out"] * (len(pieces) - 2))]


async def test_the_last_piece_does_not_wait_for_the_verdict() -> None:
    """The stream is over, and the judge has not been asked."""
    rig = _rig(streams(GOOD))
    rig.judge.waits = asyncio.Event()
    told = await relayed(rig, await begun(rig, STREAM), STAND_IN)
    assert (told.ends[-1], rig.telemetry.gated) == (True, [])
    rig.judge.waits.set()
    assert await _counted(rig) == [("passed", "")]


async def test_a_plain_answer_to_an_observed_stream_is_read_as_one() -> None:
    """Some engines do not stream what they could."""
    rig = _rig(says(GOOD))
    await asked(rig, STREAM)
    assert await _counted(rig) == [("passed", "")]


async def test_an_observed_stream_may_fail_over() -> None:
    """Before its first token, as any other."""
    rig = _rig(error(500), chain=("a", "b"))
    rig.dispatcher.answer("b", streams(GOOD))
    assert quality(await asked_stream(rig)) == ("", "b", "2")
    assert await _counted(rig) == [("passed", "")]


@pytest.mark.parametrize("answer", [error(400), error(500)])
async def test_an_error_is_not_looked_at(answer: CannedAnswer) -> None:
    """It is no answer of a model."""
    rig = _rig(answer, streams(BAD))
    await asked_stream(rig)
    await asked_stream(rig)
    assert await _counted(rig) == [("failed", "invalid_json")]


async def test_a_stream_that_its_client_leaves_is_not_looked_at() -> None:
    """Nobody knows what it would have been."""
    rig = _rig(event_stream(ROLE, TOKEN, TOKEN), streams(GOOD))
    async with aclosing(rig.engine.relay(await begun(rig, STREAM), STAND_IN)) as parts:
        await anext(parts)
        await anext(parts)
    await asked_stream(rig)
    assert await _counted(rig) == [("passed", "")]


async def test_of_a_stream_that_is_larger_than_may_be_held_nothing_is_known() -> None:
    """Its bytes are not kept; it passes all the same."""
    answer = streams(GOOD)
    size = len(body_of(answer))
    for limit, counted in ((size, ("passed", "")), (size - 1, ("skipped", ""))):
        rig = _rig(streams(GOOD), max_body_bytes=limit)
        told = await asked_stream(rig)
        assert told.body == body_of(answer)
        assert await _counted(rig) == [counted]


async def test_only_so_many_answers_are_judged_at_a_time() -> None:
    """The hundred and first is passed over, which is counted."""
    rig = _rig(*(streams(GOOD) for _ in range(gating.MAX_OBSERVED + 2)), checks=Checks(valid_json=True))
    rig.judge.waits = asyncio.Event()
    for _ in range(gating.MAX_OBSERVED + 1):
        await asked_stream(rig)
    rig.judge.waits.set()
    await _all_judged(rig)
    assert (gating.MAX_OBSERVED, len(rig.telemetry.gated), len(rig.judge.asked)) == (100, 101, 100)
    assert rig.telemetry.gated.count(("skipped", "")) == 1
    await asked_stream(rig, WITH_SCHEMA)
    await _all_judged(rig)
    assert len(rig.telemetry.gated) == 102
