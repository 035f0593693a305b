"""A failing answer and the next candidate: who is asked, how often, and what is counted."""

import asyncio

import pytest

from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from router_ext.stream.effects import HeaderEdits, HeadersReply
from router_ext.stream.events import RequestBody, RequestHeaders, ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig, ExchangeRun
from tests.unit.engine.relays import (
    JSON,
    STREAM,
    Acting,
    begun,
    failing,
    give_up,
    relayed,
    settled,
    silent,
    trio,
)

NOBODY = {"a": 0, "b": 0, "c": 0}


def _asked(rig: EngineRig) -> list[str]:
    return [call.backend.name for call in rig.dispatcher.calls]


@pytest.mark.parametrize(
    ("status", "flags", "reason"),
    [
        (500, (), "upstream_5xx"),
        (503, (), "upstream_5xx"),
        (599, (), "upstream_5xx"),
        (429, (), "rate_limited"),
        (503, ("UF",), "upstream_unreachable"),
        (503, ("UC",), "upstream_cut"),
        (504, ("UT",), "timeout"),
    ],
)
async def test_a_failing_answer_is_replaced_by_the_next_candidates(
    status: int, flags: tuple[str, ...], reason: str
) -> None:
    """Each attempt counts in its own backend, and nothing counts after the end. Envoy's flags tell the reason."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer())
    decision_id = await begun(rig)
    assert rig.in_flight() == {"a": 1, "b": 0, "c": 0}
    told = await relayed(rig, decision_id, ResponseHeaders(status, "application/json", False, flags=flags))
    assert (told.status, told.body, told.ends) == (200, b"{}", [True])
    assert rig.in_flight() == {"a": 0, "b": 1, "c": 0}
    end = settled(rig, decision_id)
    assert (end.decision.backend, end.outcome.attempts, end.outcome.failure) == ("b", 2, None)
    assert rig.telemetry.moves == [("a", "b", reason)]
    assert rig.in_flight() == NOBODY
    assert len(rig.engine.exchanges) == 0


@pytest.mark.parametrize(("status", "asked"), [(428, 0), (429, 1), (430, 0), (499, 0), (500, 1), (503, 1), (200, 0)])
def test_an_answer_fails_from_500_on_and_at_429(status: int, asked: int) -> None:
    """Any other passes on as it is."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer())
    run = ExchangeRun(rig)
    run.feed(RequestHeaders(head(), False), RequestBody(BODY, True))
    effects = run.feed(ResponseHeaders(status, "application/json", False))
    assert len(rig.dispatcher.calls) == asked
    (reply,) = [effect for effect in effects if isinstance(effect, HeadersReply)]
    assert reply.takes_over is bool(asked)


async def test_the_decisions_of_one_request_share_its_id_and_are_numbered() -> None:
    """Each is recorded, and each says why those before it are out."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", None)
    rig.dispatcher.answer("c", CannedAnswer())
    await relayed(rig, await begun(rig))
    records = [(item.id, item.backend, item.attempt) for item in rig.engine.recent]
    assert records == [("t-1", "a", 1), ("t-1", "b", 2), ("t-1", "c", 3)]
    assert rig.telemetry.decisions == [*rig.engine.recent]
    tried = [item.backend for item in rig.engine.recent[-1].candidates if item.filtered_by == "tried"]
    assert tried == ["a", "b"]


async def test_a_backend_that_failed_a_request_does_not_get_it_again() -> None:
    """Although an attempt would be left."""
    rig = EngineRig(trio(backend("a"), backend("b"), max_attempts=9))
    rig.dispatcher.answer("b", None)
    told = await relayed(rig, await begun(rig))
    assert _asked(rig) == ["b"]
    assert told.status == 503
    assert rig.telemetry.moves == [("a", "b", "upstream_5xx")]


@pytest.mark.parametrize(
    ("max_attempts", "asked", "moves"),
    [
        (1, [], []),
        (2, ["b"], [("a", "b", "upstream_5xx")]),
        (3, ["b", "c"], [("a", "b", "upstream_5xx"), ("b", "c", "upstream_unreachable")]),
    ],
)
async def test_a_request_has_so_many_attempts(
    max_attempts: int, asked: list[str], moves: list[tuple[str, str, str]]
) -> None:
    """The first one, which Envoy makes, is among them."""
    rig = EngineRig(trio(max_attempts=max_attempts))
    rig.dispatcher.answer("b", None)
    rig.dispatcher.answer("c", None)
    decision_id = await begun(rig)
    await relayed(rig, decision_id)
    assert (_asked(rig), rig.telemetry.moves) == (asked, moves)
    assert settled(rig, decision_id).outcome.attempts == max_attempts
    assert rig.in_flight() == NOBODY


@pytest.mark.parametrize("away", ["down", "paused", "full"])
async def test_without_another_candidate_the_answer_passes_as_it_is(away: str) -> None:
    """Nothing takes its place, and Envoy's entry settles the exchange."""
    rig = EngineRig(trio(backend("a"), backend("b", room=1)))
    slot = rig.engine.pool["b"]
    if away == "down":
        rig.engine.set_health("b", Health.DOWN)
    elif away == "paused":
        slot.pause(rig.clock.now_s + 1)
    else:
        slot.acquire()
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id)
    assert (told.heads, told.bodies, rig.telemetry.moves) == ([], [], [])
    assert rig.in_flight()["a"] == 1
    end = settled(rig, decision_id, usage=Usage(3, 0))
    assert (end.outcome.failure, end.outcome.attempts, end.outcome.usage) == ("upstream_5xx", 1, Usage(3, 0))
    assert (end.decision.backend, rig.in_flight()["a"]) == ("a", 0)


async def test_a_429_that_stays_is_no_failure_wherever_it_comes_from() -> None:
    """Like any other 4xx: the first backend's, and the one that the router brings."""
    rig = EngineRig(trio(backend("a"), backend("b")))
    rig.dispatcher.answer("b", failing(429))
    first = await begun(rig)
    told = await relayed(rig, first, ResponseHeaders(429, "application/json", False))
    assert (told.status, told.body) == (429, b'{"error":"mine"}')
    assert settled(rig, first, status=429).outcome.failure is None
    rig.engine.set_health("b", Health.DOWN)
    second = await begun(rig)
    assert (await relayed(rig, second, ResponseHeaders(429, "application/json", False))).heads == []
    assert settled(rig, second, status=429).outcome.failure is None


# After the stream was left


async def test_after_envoy_goes_on_alone_nothing_fails_over() -> None:
    """As with an id that nobody knows, or one that has ended."""
    rig = EngineRig(trio())
    gone, ended = await begun(rig), await begun(rig)
    rig.engine.left(gone)
    rig.engine.left("t-99")
    settled(rig, ended, status=200)
    for decision_id in (gone, ended, "t-99", ""):
        assert (await relayed(rig, decision_id)).heads == []
    assert rig.telemetry.moves == []
    assert settled(rig, gone).outcome.failure == "upstream_5xx"
    assert rig.in_flight() == NOBODY


async def test_a_request_whose_body_modes_allow_no_other_answer_does_not_fail_over() -> None:
    """Nor does one whose body nobody saw."""
    rig = EngineRig(silent(trio()))
    plans = [await rig.engine.plan(head(), STREAM, can_relay=False), await rig.engine.plan(head(), None)]
    assert [(plan.failover, plan.relay) for plan in plans] == [(False, False)] * 2  # type: ignore[union-attr]
    for decision_id in ("t-1", "t-2"):
        assert (await relayed(rig, decision_id)).heads == []


# Settling


async def test_what_the_router_brought_it_knows_itself() -> None:
    """Envoy's entry tells of the first answer: its status, flags, times and counts say nothing of the second."""
    rig = EngineRig(trio())
    usage = b'{"usage":{"prompt_tokens":7,"completion_tokens":2}}'
    rig.dispatcher.answer("b", Acting(200, JSON, (usage,), acts=lambda: rig.clock.advance(0.5)))
    decision_id = await begun(rig)
    rig.clock.advance(3)
    await relayed(rig, decision_id)
    end = settled(rig, decision_id, flags=("UF",), usage=Usage(1, 1))
    outcome = end.outcome
    assert (outcome.failure, outcome.ttft_s, outcome.usage) == (None, 0.5, Usage(7, 2))
    assert outcome.record.flags == ("UF",)
    states = rig.engine.pool.snapshot()
    assert (states["a"].ttft.samples, states["b"].ttft.samples, states["b"].ttft.p50_ms) == (0, 1, 500.0)
    assert rig.engine.pool["b"].answered_at == rig.clock.now_s


async def test_a_failure_of_the_last_attempt_is_the_requests() -> None:
    """Its backend is charged with it, and no time to a first token is taken from it."""
    rig = EngineRig(trio(backend("a"), backend("b")))
    rig.dispatcher.answer("b", failing(502))
    decision_id = await begun(rig)
    await relayed(rig, decision_id)
    end = settled(rig, decision_id, status=502)
    assert (end.outcome.failure, end.decision.backend) == ("upstream_5xx", "b")
    assert rig.engine.pool["b"].state.ttft.samples == 0


@pytest.mark.parametrize("flag", ["DC", "DR"])
async def test_a_client_that_left_within_a_relayed_answer_says_nothing_of_the_backend(flag: str) -> None:
    """The answer was not brought to its end."""
    rig = EngineRig(trio(backend("a"), backend("b")))
    rig.dispatcher.answer("b", CannedAnswer(hangs=True))
    decision_id = await begun(rig)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(relayed(rig, decision_id), 0.01)
    assert settled(rig, decision_id, status=200, flags=(flag,)).outcome.failure == "client_left"
    assert rig.engine.pool["b"].state.ttft.samples == 0


@pytest.mark.parametrize(("answer", "failure"), [(CannedAnswer(), None), (None, "upstream_unreachable")])
async def test_a_client_that_left_after_a_relayed_answer_had_all_of_it(
    answer: CannedAnswer | None, failure: str | None
) -> None:
    """Clients close as soon as they have read the end."""
    rig = EngineRig(trio(backend("a"), backend("b")))
    rig.dispatcher.answer("b", answer)
    decision_id = await begun(rig)
    await relayed(rig, decision_id)
    assert settled(rig, decision_id, status=200, flags=("DC",)).outcome.failure == failure


@pytest.mark.parametrize(("flags", "failure"), [(("DC",), "client_left"), ((), "router_fault")])
async def test_a_stream_whose_answer_was_never_asked_for_says_nothing_of_its_backend(
    flags: tuple[str, ...], failure: str
) -> None:
    """Envoy's stand-in reached the client, since it waited for the router in vain: no backend failed."""
    rig = EngineRig(silent(trio()))
    decision_id = await begun(rig, STREAM)
    rig.engine.left(decision_id)
    assert settled(rig, decision_id, flags=flags).outcome.failure == failure
    assert rig.in_flight() == NOBODY


# Exchanges that were given up


async def test_a_given_up_request_fails_over_no_more() -> None:
    """Its late entry is settled without being released once more."""
    rig = EngineRig(trio())
    decision_id = await begun(rig)
    give_up(rig)
    assert rig.in_flight() == NOBODY
    assert (await relayed(rig, decision_id)).heads == []
    assert settled(rig, decision_id).outcome.failure == "upstream_5xx"
    assert rig.in_flight() == NOBODY


async def test_a_request_that_is_given_up_in_the_middle_of_a_relay_ends_where_it_is() -> None:
    """The backend that it is on fails: nothing is begun that nobody would end."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", Acting(500, JSON, (b"{}",), acts=lambda: give_up(rig)))
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id)
    assert (told.status, _asked(rig)) == (500, ["b"])
    assert rig.in_flight() == NOBODY
    assert [decision.backend for decision in rig.telemetry.losses] == ["b"]
    end = settled(rig, decision_id)
    assert (end.outcome.failure, end.outcome.attempts) == ("upstream_5xx", 2)
    assert rig.in_flight() == NOBODY


# Reloads


async def test_a_request_moves_within_the_configuration_in_force() -> None:
    """A backend that is gone is not asked; one that the request is on ends its count where it began."""
    rig = EngineRig(trio())
    decision_id = await begun(rig)
    rig.engine.configure(router(backend("a"), backend("c")))
    rig.dispatcher.answer("c", CannedAnswer())
    assert (await relayed(rig, decision_id)).status == 200
    assert rig.in_flight() == {"a": 0, "c": 1}
    rig.engine.configure(router(backend("a")))
    settled(rig, decision_id)
    assert rig.in_flight() == {"a": 0}


async def test_many_requests_at_once_end_with_nothing_in_flight() -> None:
    """Each on its own way over the backends."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer(), None, failing(500), CannedAnswer(), failing(400))
    rig.dispatcher.answer("c", CannedAnswer(), None)
    ids = [await begun(rig) for _ in range(5)]
    told = await asyncio.gather(*(relayed(rig, decision_id) for decision_id in ids))
    assert [item.status for item in told] == [200, 200, 503, 200, 400]
    assert rig.in_flight() == {"a": 0, "b": 3, "c": 2}
    for decision_id in ids:
        settled(rig, decision_id)
    assert rig.in_flight() == NOBODY


def test_an_answer_that_passes_keeps_the_headers_of_the_first_decision() -> None:
    """No attempt is counted in a header, since there was one only; Envoy's flags stay inside."""
    rig = EngineRig(trio(backend("a")))
    run = ExchangeRun(rig)
    run.feed(RequestHeaders(head(), False), RequestBody(BODY, True))
    (_, reply, *_) = run.feed(ResponseHeaders(503, "text/plain", False, flags=("UF",)))
    assert isinstance(reply, HeadersReply)
    told = (("x-kronaxis-backend", "a"), ("x-kronaxis-rule", "default"))
    assert (reply.edits, reply.takes_over) == (HeaderEdits(told, ("x-kronaxis-egress-flags",)), False)
