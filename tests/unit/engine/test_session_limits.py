"""Where sessions end: too long, too large, a store that is away, and turns that cannot be kept."""

from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.engine.turns import DONE as LAST
from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import (
    CREATE,
    DONE,
    JSON,
    UNSAVED,
    UNSAVED_EVENT,
    Asked,
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

STORED = (user("hi"), assistant("Hello."))


def rig(**sessions: int) -> EngineRig:
    """An engine with sessions and one backend."""
    return EngineRig(with_sessions(router(backend("a")), **sessions))


def limited(config: RouterConfig, max_body_bytes: int) -> RouterConfig:
    """The same with a limit on bodies."""
    return replace(config, server=replace(config.server, max_body_bytes=max_body_bytes))


def refused(asked: Asked, status: int, code: str) -> bool:
    """True when the router answered itself, and told of no session."""
    return (asked.status, asked.error["code"]) == (status, code) and "x-kronaxis-session-id" not in asked.headers


def test_a_first_turn_of_as_many_tokens_as_allowed_is_served() -> None:
    """30 bytes are estimated at 8 tokens; with one token less allowed it is refused, with both numbers."""
    assert ask(rig(max_context_tokens=8), said("hi"), CREATE, plain("Hello.")).status == 200
    run = rig(max_context_tokens=7)
    asked = ask(run, said("hi"), CREATE)
    assert refused(asked, 413, "session_too_long")
    assert asked.error["message"] == "The context would have about 8 tokens; a session may have 7."
    assert asked.error["param"] == "messages"
    assert run.telemetry.decisions == []


def test_a_session_of_as_many_tokens_as_allowed_is_continued() -> None:
    """10 that the engine counted and 8 for the new message; nothing is cut to make it fit, and the session stays."""
    for limit, status in ((18, 200), (17, 413)):
        run = rig(max_context_tokens=limit)
        session_id = created(run)
        asked = ask(run, said("hi"), continues(session_id), plain("Sure."))
        assert asked.status == status
    assert asked.error["message"] == "The context would have about 18 tokens; a session may have 17."
    assert messages_of(run, session_id) == STORED
    assert run.telemetry.tokens_saved == []
    assert ask(run, body_of(b"{}"), continues(session_id), plain("Sure.")).status == 200


def test_a_hydrated_body_may_be_as_large_as_any_body() -> None:
    """A byte more is refused, with the limit."""
    size = len(body_of(*STORED, user("more")))
    for limit, status in ((size, 200), (size - 1, 413)):
        run = rig()
        session_id = created(run)
        run.engine.configure(limited(run.config, limit))
        asked = ask(run, said("more"), continues(session_id), plain("Sure."))
        assert asked.status == status
    assert refused(asked, 413, "body_too_large")
    assert asked.error["message"] == f"The session and the new messages are larger than {size - 1} bytes."
    assert messages_of(run, session_id) == STORED


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m-a"}',
        b'{"model":"m-a","messages":[]}',
        b'{"model":"m-a","messages":["hi"]}',
        b'{"model":"m-a","messages":{"role":"user"}}',
    ],
)
def test_a_session_needs_messages(body: bytes) -> None:
    """Objects, and at least one."""
    run = rig()
    session_id = created(run)
    for headers in (CREATE, continues(session_id)):
        assert refused(ask(run, body, headers), 400, "invalid_messages")
    assert messages_of(run, session_id) == STORED


def test_a_turn_needs_a_new_message() -> None:
    """Instructions alone, or what is stored already, ask nothing."""
    run = rig()
    session_id = created(run)
    for messages in (STORED, (b'{"role":"system","content":"Be brief."}',)):
        assert refused(ask(run, body_of(*messages), continues(session_id)), 400, "invalid_messages")


@pytest.mark.parametrize("wish", [0, 1, 2], ids=["create", "continue", "end"])
def test_while_the_store_is_away_sessions_are_told_to_come_back(wish: int) -> None:
    """503 with ``Retry-After``; no backend is asked, and the session is there afterwards."""
    run = rig()
    session_id = created(run)
    headers = [CREATE, continues(session_id), ends(session_id)][wish]
    run.sessions.away = True
    asked = ask(run, said("more"), headers)
    assert (asked.status, asked.body) == (503, UNSAVED)
    assert asked.headers["retry-after"] == "2"
    assert len(run.telemetry.decisions) == 1
    run.sessions.away = False
    assert ask(run, said("more"), headers, plain("Sure.")).status == 200


def test_while_the_store_is_away_other_requests_are_served() -> None:
    """The store is not asked for them."""
    run = rig()
    run.sessions.away = True
    asked = ask(run, said("hi"), None, plain("Hello."))
    assert (asked.status, asked.body) == (200, plain("Hello."))
    assert run.telemetry.store_calls == []


def wishes(run: EngineRig) -> list[dict[str, str]]:
    """Each thing that can be done with a session."""
    return [CREATE, continues(created(run)), ends(created(run))]


@pytest.mark.parametrize("wish", [0, 1, 2], ids=["create", "continue", "end"])
def test_a_plain_answer_that_cannot_be_kept_becomes_a_503(wish: int) -> None:
    """With an error body, its type and length, and without the session's headers."""
    run = rig()
    headers = wishes(run)[wish]
    before = dict(run.sessions.sessions)
    asked = begin(run, said("more"), headers)
    asked.headers["content-encoding"] = "identity"
    asked.answer_head(kind="application/vnd.own+json")
    run.sessions.away = True
    asked.piece(plain("Sure."), end=True)
    assert (asked.status, asked.body) == (503, UNSAVED)
    assert asked.headers == {
        "content-type": JSON,
        "content-length": str(len(UNSAVED)),
        "retry-after": "2",
        "x-kronaxis-backend": "a",
        "x-kronaxis-rule": "default",
    }
    asked.settle()
    assert len(run.sessions.sessions) == len(before)
    assert all(run.sessions.sessions[name].messages == before[name].messages for name in before)
    assert run.telemetry.unsaved_turns == ["store"]


@pytest.mark.parametrize("wish", [0, 1, 2], ids=["create", "continue", "end"])
def test_a_stream_that_cannot_be_kept_ends_with_an_error(wish: int) -> None:
    """In the place of the piece with the last event, whatever else is in it."""
    run = rig()
    headers = wishes(run)[wish]
    before = dict(run.sessions.sessions)
    asked = begin(run, said("more", stream=True), headers)
    asked.answer_head()
    first, *rest = events("Sure.")
    asked.piece(first)
    run.sessions.away = True
    asked.piece(b"".join(rest))
    asked.piece(b"", end=True)
    assert asked.body == first + UNSAVED_EVENT
    asked.settle()
    assert all(run.sessions.sessions[name].messages == before[name].messages for name in before)
    assert run.telemetry.unsaved_turns == ["store"]


@pytest.mark.parametrize("cut", range(len(DONE) + 1))
def test_the_last_event_is_held_wherever_it_is_cut(cut: int) -> None:
    """Not a byte of it goes on before the turn is kept: some clients act on its first line."""
    for away in (False, True):
        run = rig()
        asked = begin(run, said("hi", stream=True), CREATE)
        asked.answer_head()
        *first, done = events("Hello.")
        for event in first:
            asked.piece(event)
        run.sessions.away = away
        got = asked.piece(done[:cut])
        assert bool(run.sessions.sessions) is (cut == len(DONE) and not away)
        assert got in (b"", UNSAVED_EVENT if away else DONE)
        asked.piece(done[cut:], end=True)
        assert asked.body == b"".join(first) + (UNSAVED_EVENT if away else DONE)


def test_a_stream_that_breaks_within_an_event_goes_on_as_it_came() -> None:
    """Nothing is lost of what the backend sent, and nothing is kept."""
    run = rig()
    *first, last, _, _ = events("Hello.")
    asked = ask(run, said("hi", stream=True), CREATE, (*first, last[:9], last[9:20]))
    assert asked.body == b"".join(first) + last[:20]
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["failed"]


def test_generated_text_that_looks_like_the_last_event_is_none() -> None:
    """Only an event of that data alone is."""
    run = rig()
    token = events("data: [DONE]")[1]
    asked = begin(run, said("hi", stream=True), CREATE)
    asked.answer_head()
    assert LAST in token
    assert asked.piece(token) == token
    assert not asked.left


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_that_went_away_meanwhile_does_not_come_back(stream: bool) -> None:
    """The answer is the client's, the turn is counted, and the next one finds no session."""
    run = rig()
    session_id = created(run)
    asked = begin(run, said("more", stream=stream), continues(session_id))
    run.sessions.sessions.clear()
    answer = b"".join(events("Sure.")) if stream else plain("Sure.")
    asked.answer_head(kind="text/event-stream" if stream else JSON)
    assert asked.piece(answer, end=True) == answer
    asked.settle()
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["gone"]
    assert ask(run, said("more"), continues(session_id)).status == 404


def test_a_turn_that_was_kept_is_kept_whatever_becomes_of_its_client() -> None:
    """It left after the last event had been released."""
    run = rig()
    asked = begin(run, said("hi", stream=True), CREATE)
    asked.answer_head()
    asked.piece(b"".join(events("Hello.")))
    asked.settle(flags=("DC",))
    assert messages_of(run, asked.session_id) == STORED
    assert run.telemetry.unsaved_turns == []


def test_every_call_of_the_store_is_told() -> None:
    """With its kind, and whether it was answered."""
    run = rig()
    session_id = created(run)
    ask(run, said("more"), continues(session_id), plain("Sure."))
    ask(run, said("bye"), ends(session_id), plain("Bye."))
    run.sessions.away = True
    ask(run, said("more"), continues(session_id))
    calls = [(operation, ok) for operation, _, ok in run.telemetry.store_calls]
    assert calls == [
        *(("load", True), ("create", True), ("load", True), ("append", True), ("load", True), ("delete", True)),
        ("load", False),
    ]
