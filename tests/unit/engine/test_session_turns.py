"""Turns of sessions on their way: several backends, several turns at once, caches, times and configurations."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from router_ext.config.sections import KvPinning, Server, Sessions
from router_ext.model.outcome import Usage
from router_ext.model.session import Turn
from router_ext.payload.session_request import owner_of
from router_ext.stream.effects import AskFollow, RelayBody, RelayHead
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.session_turns import (
    CREATE,
    DONE,
    JSON,
    UNSAVED,
    UNSAVED_EVENT,
    ask,
    assistant,
    begin,
    body_of,
    continues,
    created,
    ends,
    events,
    messages_of,
    plain,
    said,
    user,
    with_sessions,
)
from tests.unit.engine.relays import BROKEN, ERROR, Acting, begun, failing, give_up, relayed, settled, silent, trio

STORED = (user("hi"), assistant("Hello."))
MORE = body_of(*STORED, user("more"))
SURE = (*STORED, user("more"), assistant("Sure."))


def rig() -> EngineRig:
    """An engine with sessions and one backend."""
    return EngineRig(with_sessions(router(backend("a"))))


def three(*, watched: bool = False) -> EngineRig:
    """An engine with sessions and three backends, which are asked in order."""
    config = with_sessions(trio(backend("a"), backend("b", model="m-a"), backend("c", model="m-c")))
    return EngineRig(silent(config) if watched else config)


def whole(content: str) -> CannedAnswer:
    """A plain answer of a backend that the router asks itself."""
    return CannedAnswer(body=(plain(content),))


# Failover


async def test_a_turn_that_fails_over_sends_the_same_hydrated_body() -> None:
    """Byte for byte but for the model's name, and what is kept is the answer of the backend that gave one."""
    run = three()
    session_id = await _session(run)
    decision_id = await begun(run, said("more"), head(headers=continues(session_id)))
    run.dispatcher.answer("b", failing(500))
    run.dispatcher.answer("c", whole("Sure."))
    told = await relayed(run, decision_id)
    assert [call.body for call in run.dispatcher.calls] == [MORE, MORE.replace(b'"m-a"', b'"m-c"')]
    assert (told.status, told.body) == (200, plain("Sure."))
    assert (told.headers["x-kronaxis-session-id"], told.headers["x-kronaxis-session-tokens"]) == (session_id, "18")
    assert messages_of(run, session_id) == SURE
    settled(run, decision_id)
    assert run.telemetry.unsaved_turns == []


async def test_no_session_header_travels_to_a_backend() -> None:
    """Neither the wish nor the id."""
    run = three()
    decision_id = await begun(run, said("hi"), head(headers=CREATE))
    run.dispatcher.answer("b", whole("Hello."))
    await relayed(run, decision_id)
    assert not [name for name, _ in run.dispatcher.calls[0].headers if name.startswith("x-kronaxis-")]


async def test_when_every_backend_fails_nothing_is_kept() -> None:
    """The client gets what the last one said, and nothing of a session."""
    run = three()
    decision_id = await begun(run, said("hi"), head(headers=CREATE))
    run.dispatcher.answer("b", failing(500))
    run.dispatcher.answer("c", failing(503))
    told = await relayed(run, decision_id)
    assert told.status == 503
    assert not [name for name in told.headers if "session" in name]
    settled(run, decision_id)
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["failed"]


async def test_a_relayed_plain_answer_that_cannot_be_kept_becomes_a_503() -> None:
    """Before any of it, its head included, is released."""
    run = three()
    decision_id = await begun(run, said("hi"), head(headers=CREATE))
    run.dispatcher.answer("b", Acting(body=(plain("Hello."),), acts=lambda: _leave(run.sessions)))
    told = await relayed(run, decision_id)
    assert (told.status, told.body, told.ends) == (503, UNSAVED, [True])
    assert told.headers["content-type"] == JSON
    assert not [name for name in told.headers if "session" in name]
    settled(run, decision_id)
    assert run.telemetry.unsaved_turns == ["store"]


# Watched streams


async def test_a_watched_stream_is_kept_before_its_last_event_is_released() -> None:
    """The router brings it itself; the pieces of a session are the same bytes as any other's."""
    run = three(watched=True)
    session_id = await _session(run)
    decision_id = await begun(run, said("more", stream=True), head(headers=continues(session_id)))
    run.dispatcher.answer("a", event_stream(*events("Su", "re.")))
    kept: list[tuple[bytes, bool]] = []
    async with aclosing(run.engine.relay(decision_id, ResponseHeaders(503, "", False))) as parts:
        async for part in parts:
            if isinstance(part, RelayHead):
                assert dict(part.edits.set)["x-kronaxis-session-id"] == session_id
            else:
                kept.append((part.data, messages_of(run, session_id) == SURE))
    assert b"".join(data for data, _ in kept) == b"".join(events("Su", "re."))
    assert [is_kept for data, is_kept in kept if DONE in data] == [True]
    assert not any(is_kept for _, is_kept in kept[: [DONE in data for data, _ in kept].index(True)])
    assert run.dispatcher.calls[0].body == MORE.replace(b'"m-a",', b'"m-a","stream":true,')


async def test_a_watched_stream_fails_over_with_the_same_body() -> None:
    """Before its first token; what the first one said is nowhere."""
    run = three(watched=True)
    session_id = await _session(run)
    decision_id = await begun(run, said("more", stream=True), head(headers=continues(session_id)))
    run.dispatcher.answer("a", event_stream(events("x")[0], ERROR))
    run.dispatcher.answer("b", event_stream(*events("Sure.")))
    told = await relayed(run, decision_id)
    assert told.body == b"".join(events("Sure."))
    first, second = (call.body for call in run.dispatcher.calls)
    assert first == second
    assert messages_of(run, session_id) == SURE


async def test_a_watched_stream_that_breaks_is_not_kept() -> None:
    """Its client gets the error that any stream would end with."""
    run = three(watched=True)
    session_id = await _session(run)
    decision_id = await begun(run, said("more", stream=True), head(headers=continues(session_id)))
    run.dispatcher.answer("a", event_stream(*events("Sure.")[:2], cut=True))
    told = await relayed(run, decision_id)
    assert told.body == b"".join(events("Sure.")[:2]) + BROKEN
    settled(run, decision_id)
    assert messages_of(run, session_id) == STORED
    assert run.telemetry.unsaved_turns == ["failed"]


async def test_a_watched_stream_that_cannot_be_kept_ends_with_an_error() -> None:
    """In the place of its last event."""
    run = three(watched=True)
    decision_id = await begun(run, said("hi", stream=True), head(headers=CREATE))
    run.dispatcher.answer("a", Acting(200, (("content-type", "text/event-stream"),), events("Hello.")))
    run.sessions.away = True
    told = await relayed(run, decision_id)
    assert told.body == b"".join(events("Hello.")[:-1]) + UNSAVED_EVENT
    settled(run, decision_id)
    assert run.telemetry.unsaved_turns == ["store"]


async def test_a_client_that_leaves_a_watched_stream_appends_nothing() -> None:
    """The relay is closed in the middle."""
    run = three(watched=True)
    decision_id = await begun(run, said("hi", stream=True), head(headers=CREATE))
    run.dispatcher.answer("a", event_stream(*events("Hello.")[:2], hangs=True))
    async with aclosing(run.engine.relay(decision_id, ResponseHeaders(503, "", False))) as parts:
        async for part in parts:
            if isinstance(part, RelayBody):
                break
    settled(run, decision_id, flags=("DC",))
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["client_left"]


# Several at once


@pytest.mark.parametrize("first", [0, 1])
def test_two_turns_at_once_are_both_kept_whole(first: int) -> None:
    """In the order in which they were answered; neither sees the other, and the next turn sees both."""
    run = rig()
    session_id = created(run)
    turns = [begin(run, said(text, stream=True), continues(session_id)) for text in ("one", "two")]
    assert [turn.sent for turn in turns] == [
        body_of(*STORED, user(text)).replace(b'"m-a",', b'"m-a","stream":true,') for text in ("one", "two")
    ]
    for turn in turns:
        turn.answer_head()
    for one, two in zip(events("1."), events("2."), strict=True):
        for turn, piece in sorted(zip(turns, (one, two), strict=True), key=lambda pair: pair[0] is turns[1 - first]):
            turn.piece(piece)
    each = ((user("one"), assistant("1.")), (user("two"), assistant("2.")))
    assert messages_of(run, session_id) == (*STORED, *each[first], *each[1 - first])
    assert begin(run, said("three"), continues(session_id)).sent == body_of(
        *STORED, *each[first], *each[1 - first], user("three")
    )


def test_a_turn_beside_one_that_ends_the_session_is_lost_with_it() -> None:
    """Whichever is answered first."""
    for last in (0, 1):
        run = rig()
        session_id = created(run)
        turns = [begin(run, said("x"), headers) for headers in (continues(session_id), ends(session_id))]
        for turn in turns if last else reversed(turns):
            turn.answer_head(kind=JSON)
            assert turn.piece(plain("y"), end=True) == plain("y")
        assert run.sessions.sessions == {}
        assert run.telemetry.unsaved_turns == ([] if last else ["gone"])


class SlowStore(FakeSessionStore):
    """Writes wait until they are let go."""

    __slots__ = ("free", "reached")

    def __init__(self) -> None:
        super().__init__()
        self.free, self.reached = asyncio.Event(), asyncio.Event()

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Waits first."""
        self.reached.set()
        await self.free.wait()
        return await FakeSessionStore.append(self, session_id, owner, turn, now_s)


async def test_a_client_that_leaves_while_its_turn_is_written_is_cancelled_cleanly() -> None:
    """No one gets its last event, and the session is as it was."""
    store = SlowStore()
    run = EngineRig(with_sessions(router(backend("a"))), sessions=store)
    session_id = await _session(run)
    decision_id = await begun(run, said("more"), head(headers=continues(session_id)))
    ask_follow = AskFollow(plain("Sure."), end=True, events=False)
    task = asyncio.create_task(run.engine.follow(decision_id, ask_follow))
    await store.reached.wait()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    settled(run, decision_id, status=200, flags=("DC",))
    assert messages_of(run, session_id) == STORED
    assert run.telemetry.store_calls[-1][::2] == ("append", False)


def test_a_stream_whose_exchange_was_given_up_is_still_kept() -> None:
    """Entries of other exchanges were lost, and the oldest that is open goes for them: this one still runs."""
    run = rig()
    asked = begin(run, said("hi", stream=True), CREATE)
    asked.answer_head()
    give_up(run)
    for piece in events("Hello."):
        asked.piece(piece)
    assert asked.body.endswith(UNSAVED_EVENT) or messages_of(run, asked.session_id) == STORED


# Caches, times and configurations


def pinned() -> EngineRig:
    """An engine with sessions and pinning over two backends of one model."""
    config = router(backend("a"), backend("b", model="m-a"))
    return EngineRig(
        replace(config, server=Server(kv_pinning=KvPinning(enabled=True), sessions=Sessions(enabled=True)))
    )


@pytest.mark.parametrize("stream", [False, True])
def test_the_next_turn_is_expected_in_the_cache_with_the_answer(stream: bool) -> None:
    """A long answer is a prefix of the next prompt: all but the new message, and an engine's report agrees."""
    run = pinned()
    answer = "All work and no play makes a dull router. " * 300
    first = ask(run, said("hi", stream=stream), CREATE, events(answer) if stream else plain(answer))
    assert first.headers["x-kronaxis-kv-pin"] == "MISS"
    second = begin(run, said("more"), continues(first.session_id))
    assert run.telemetry.pins[-1] == (first.headers["x-kronaxis-backend"], True)
    second.answer_head(kind=JSON)
    assert second.headers["x-kronaxis-kv-pin"] == "HIT"
    second.piece(plain("Sure."), end=True)
    second.settle(usage=Usage(4000, 2, 3900))
    ((_, predicted, cached),) = run.telemetry.cache_reports
    assert cached == 3900
    assert 3900 <= predicted <= 4000


def test_an_answer_that_was_not_kept_is_expected_nowhere() -> None:
    """It will not come back."""
    run = pinned()
    run.sessions.read_only = True
    answer = "All work and no play makes a dull router. " * 300
    ask(run, said("hi"), CREATE, plain(answer))
    begin(run, body_of(user("hi"), assistant(answer), user("more")))
    assert [hit for _, hit in run.telemetry.pins] == [False, False]


def test_the_first_token_of_a_followed_stream_is_timed() -> None:
    """From the request to the first piece with generated text, not to the role."""
    run = rig()
    asked = begin(run, said("hi", stream=True), CREATE)
    asked.answer_head()
    for piece in events("Hel", "lo."):
        run.clock.advance(0.25)
        asked.piece(piece)
    asked.settle()
    assert run.telemetry.ends[-1].ttft_s == 0.5


def test_a_held_answer_is_timed_by_envoy() -> None:
    """The last byte from the backend, as for any other answer."""
    run = rig()
    created(run)
    assert run.telemetry.ends[-1].ttft_s == 1.5


def test_a_turn_that_is_open_at_a_reload_ends_on_its_own_configuration() -> None:
    """Its backend may be gone, and sessions may be off: it is kept all the same."""
    run = rig()
    session_id = created(run)
    asked = begin(run, said("more"), continues(session_id))
    run.engine.configure(router(backend("other", model="m-a")))
    asked.answer_head(kind=JSON)
    asked.piece(plain("Sure."), end=True)
    asked.settle()
    assert asked.status == 200
    assert messages_of(run, session_id) == SURE
    refusal = ask(run, said("more"), continues(session_id))
    assert (refusal.status, refusal.error["code"]) == (400, "sessions_disabled")


def test_a_reload_with_another_limit_holds_from_the_next_turn_on() -> None:
    """A session that has outgrown it is refused, and is there again when there is room."""
    run = rig()
    session_id = created(run)
    config = run.config
    run.engine.configure(with_sessions(config, max_context_tokens=17))
    assert ask(run, said("hi"), continues(session_id)).status == 413
    run.engine.configure(with_sessions(config, max_context_tokens=18))
    run.heal()
    assert ask(run, said("hi"), continues(session_id), plain("Sure.")).status == 200


def test_tool_calls_come_back_as_they_were_made() -> None:
    """The stored message of a streamed answer is that of a plain one."""
    run = rig()
    call = b'{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}'
    chunk = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,' + call[1:-1] + b"}]}}]}\n\n"
    last = events(finish="tool_calls")[1:]
    asked = ask(run, said("go", stream=True), CREATE, (events()[0], chunk, *last))
    result = b'{"role":"tool","tool_call_id":"c1","content":"ok"}'
    sent = orjson.loads(begin(run, body_of(result), continues(asked.session_id)).sent)["messages"]
    assert sent[1]["tool_calls"] == [orjson.loads(call)]
    assert sent[2] == orjson.loads(result)


def _leave(store: FakeSessionStore) -> None:
    store.away = True


async def _session(run: EngineRig) -> str:
    """A stored session of one turn, without an exchange."""
    session_id = "sess_0f8fad5b-d9cb-469f-a165-70867728950e"
    await run.sessions.create(session_id, owner_of({}, ""), Turn(STORED, 10, 8), run.clock.wall())
    return session_id
