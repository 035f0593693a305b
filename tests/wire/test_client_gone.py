"""Clients that leave, and Envoys that close, at every message of an exchange: nothing stays behind."""

import asyncio

import pytest

from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import Outcome, Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand
from tests.wire.modes import ALL_MODES

REQUEST = Request((b'{"model":"m",', b'"stream":true}'))
FIRST_CHUNK = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
ANSWER = Response((FIRST_CHUNK, FIRST_CHUNK), headers=(("content-type", "text/event-stream"),))


async def messages_of(stand: Stand, modes: ProcessingModes) -> Outcome:
    """A whole exchange, to count its messages."""
    return await stand.envoy(modes).exchange(REQUEST, ANSWER)


async def play(stand: Stand, modes: ProcessingModes, act: Act) -> Outcome:
    """An exchange that ends early, up to the end of the processor's handler."""
    outcome = await stand.envoy(modes).exchange(REQUEST, ANSWER, act)
    await stand.quiet()
    return outcome


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_a_client_that_leaves_after_any_message_leaves_nothing_behind(stand: Stand, modes: ProcessingModes) -> None:
    """The access log entry settles what Envoy was told of; what it was not told of, reconciliation ends."""

    async def leave_everywhere() -> None:
        whole = await messages_of(stand, modes)
        await send_access_log(stand.channel, [entry_of(whole)])
        assert stand.in_flight == 0
        for number in range(1, len(whole.sent) + 1):
            outcome = await play(stand, modes, Act(gone_after_message=number))
            await send_access_log(stand.channel, [entry_of(outcome)])
            assert stand.in_flight == 0 or not outcome.decision_id
            stand.lose_open_exchanges()
            assert stand.in_flight == 0

    stand.run(leave_everywhere())
    assert len(stand.engine.exchanges) == 0
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_a_client_that_leaves_after_any_reply_is_settled_by_its_entry(stand: Stand, modes: ProcessingModes) -> None:
    """As soon as Envoy has the decision's id, the entry finds the exchange, and it is settled once."""

    async def leave_everywhere() -> None:
        whole = await messages_of(stand, modes)
        await send_access_log(stand.channel, [entry_of(whole)])
        for number in range(1, len(whole.answered) + 1):
            stand.kept.ends.clear()
            outcome = await play(stand, modes, Act(gone_after_reply=number))
            await send_access_log(stand.channel, [entry_of(outcome)])
            assert [end.decision.id for end in stand.kept.ends] == (
                [outcome.decision_id] if outcome.decision_id else []
            )
            assert stand.in_flight == 0 or not outcome.decision_id
            stand.lose_open_exchanges()

    stand.run(leave_everywhere())
    assert stand.in_flight == 0
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_without_an_entry_reconciliation_ends_the_exchange(stand: Stand, modes: ProcessingModes) -> None:
    """Envoy has nothing open: after some looks the count falls to 0, and the loss is told."""

    async def leave_after_the_last_reply() -> Outcome:
        whole = await messages_of(stand, modes)
        await send_access_log(stand.channel, [entry_of(whole)])
        return await play(stand, modes, Act(gone_after_reply=len(whole.answered)))

    outcome = stand.run(leave_after_the_last_reply())
    assert stand.in_flight == 1
    stand.lose_open_exchanges()
    assert stand.in_flight == 0
    assert [decision.id for decision in stand.kept.losses] == [outcome.decision_id]


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_envoy_may_close_the_stream_after_any_message(stand: Stand, modes: ProcessingModes) -> None:
    """The processor ends its side without an error, and without a fault."""

    async def close_everywhere() -> None:
        whole = await messages_of(stand, modes)
        for number in range(1, len(whole.sent) + 1):
            await play(stand, modes, Act(closes_after_message=number))

    stand.run(close_everywhere())
    assert stand.kept.faults == []
    stand.lose_open_exchanges()
    assert stand.in_flight == 0


def test_hundreds_of_cancelled_streams_leave_no_task(stand: Stand) -> None:
    """After 300 streams that were cancelled in mid-body no task is left of them, and no exchange is open."""

    async def cancel_many() -> None:
        for _ in range(6):
            plays = [stand.envoy().exchange(REQUEST, ANSWER, Act(gone_after_reply=2)) for _ in range(50)]
            outcomes = await asyncio.gather(*plays)
            await send_access_log(stand.channel, [entry_of(outcome) for outcome in outcomes])
        await stand.quiet()

    stand.run(cancel_many())
    assert len(stand.kept.processing_s) == 300
    assert len(stand.kept.ends) == 300
    assert len(stand.engine.exchanges) == 0
    assert stand.in_flight == 0
    assert stand.kept.faults == []
