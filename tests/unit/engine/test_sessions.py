"""Sessions in the engine: made by a good answer, continued by their owner only, destroyed when they are told to end."""

import re

import pytest

from router_ext.stream.effects import Answer, Forward, HeadersReply
from router_ext.stream.events import ResponseHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import (
    CREATE,
    DONE,
    JSON,
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

UNKNOWN = "sess_00000000-0000-4000-8000-000000000000"
ERROR_EVENT = b'data: {"error":{"message":"engine overloaded","type":"server_error"}}\n\n'
SYSTEM = b'{ "role":"system", "content":"Be brief." }'


def rig() -> EngineRig:
    """An engine with sessions and one backend."""
    return EngineRig(with_sessions(router(backend("a"))))


def test_a_plain_answer_is_kept_before_any_of_it_is_released() -> None:
    """Envoy holds headers and body; when the body goes on, the turn is in the store."""
    run = rig()
    asked = begin(run, said("hi"), CREATE)
    asked.answer_head(kind=JSON)
    assert run.sessions.sessions == {}
    assert asked.piece(plain("Hello."), end=True) == plain("Hello.")
    assert messages_of(run, asked.session_id) == (user("hi"), assistant("Hello."))
    assert asked.left
    assert run.telemetry.sessions_created == 1


def test_a_streamed_answer_is_kept_before_its_last_event_is_released() -> None:
    """Everything before it passes at once."""
    run = rig()
    asked = begin(run, said("hi", stream=True), CREATE)
    asked.answer_head()
    *first, done = events("Hel", "lo.")
    for event in first:
        assert asked.piece(event) == event
        assert run.sessions.sessions == {}
    assert asked.piece(done) == DONE
    assert messages_of(run, asked.session_id) == (user("hi"), assistant("Hello."))
    assert asked.left


def test_a_stream_without_a_last_event_is_kept_at_its_end() -> None:
    """Some servers leave ``[DONE]`` out."""
    run = rig()
    *first, _ = events("Hello.")
    asked = ask(run, said("hi", stream=True), CREATE, (*first, b""))
    assert asked.body == b"".join(first)
    assert messages_of(run, asked.session_id) == (user("hi"), assistant("Hello."))


def test_a_session_has_an_id_that_nobody_can_guess() -> None:
    """``sess_`` and a random UUID, another one for each session."""
    run = rig()
    ids = {created(run) for _ in range(5)}
    assert len(ids) == 5
    form = r"sess_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(form, one) for one in ids)


def test_the_first_turn_goes_to_the_backend_as_it_came() -> None:
    """Not a byte of it changes."""
    body = b'{ "messages" : [' + SYSTEM + b', {"content":"hi","role":"user"} ], "model":"m-a", "seed":1.50 }'
    assert begin(rig(), body, CREATE).sent == body


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_error_creates_nothing_and_tells_of_no_session(status: int) -> None:
    """It passes as it is."""
    run = rig()
    asked = ask(run, said("hi"), CREATE, b'{"error":"mine"}', status)
    assert (asked.status, asked.body) == (status, b'{"error":"mine"}')
    assert not {"x-kronaxis-session-id", "x-kronaxis-session-tokens"} & set(asked.headers)
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["failed"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b'{"choices":[]}',
        plain("Hello.", finish=None),
        plain("Hello.", finish="error"),
        (*events("Hello.")[:2], ERROR_EVENT, DONE),
        (*events("Hello.")[:3], ERROR_EVENT, DONE),
        (*events("Hello.")[:2], b""),
        events("Hello.", finish=None),
        (b"",),
    ],
)
def test_an_answer_that_failed_is_not_kept(answer: bytes | tuple[bytes, ...]) -> None:
    """Neither as a session's first turn nor as a later one; the client gets it as it came."""
    run = rig()
    session_id = created(run)
    stream = not isinstance(answer, bytes)
    for headers in (CREATE, continues(session_id), ends(session_id)):
        asked = ask(run, said("more", stream=stream), headers, answer)
        assert asked.body == (answer if isinstance(answer, bytes) else b"".join(answer))
    assert list(run.sessions.sessions) == [session_id]
    assert messages_of(run, session_id) == (user("hi"), assistant("Hello."))
    assert run.telemetry.unsaved_turns == ["failed"] * 3


def test_a_client_that_leaves_in_the_middle_appends_nothing() -> None:
    """Its access log entry says so."""
    run = rig()
    session_id = created(run)
    asked = begin(run, said("more", stream=True), continues(session_id))
    asked.answer_head()
    asked.piece(events("Hel", "lo.")[1])
    asked.settle(flags=("DC",))
    assert messages_of(run, session_id) == (user("hi"), assistant("Hello."))
    assert run.telemetry.unsaved_turns == ["client_left"]


def test_a_turn_is_sent_behind_what_is_stored() -> None:
    """Its instructions in front of it; no stored byte changes, and the rest of the body neither."""
    run = rig()
    session_id = created(run)
    body = b'{"model":"m-a", "messages": [' + SYSTEM + b',  {"content":"more","role":"user"}], "seed":1.50}'
    asked = ask(run, body, continues(session_id), plain("Sure."))
    new = b'{"content":"more","role":"user"}'
    whole = b"[" + b",".join((SYSTEM, user("hi"), assistant("Hello."), new)) + b"]"
    assert asked.sent == b'{"model":"m-a", "messages": ' + whole + b', "seed":1.50}'
    assert asked.session_id == session_id
    assert messages_of(run, session_id) == (user("hi"), assistant("Hello."), new, assistant("Sure."))


def test_plain_and_streamed_turns_follow_each_other() -> None:
    """The next one brings all before it, whatever their form."""
    run = rig()
    session_id = ask(run, said("one", stream=True), CREATE, events("1", ".")).session_id
    ask(run, said("two"), continues(session_id), plain("2."))
    ask(run, said("three", stream=True), continues(session_id), events("3."))
    whole = (user("one"), assistant("1."), user("two"), assistant("2."), user("three"), assistant("3."))
    assert messages_of(run, session_id) == whole
    assert begin(run, said("four"), continues(session_id)).sent == body_of(*whole, user("four"))
    assert run.sessions.sessions[session_id].meta.turns == 3


def test_a_client_that_repeats_the_conversation_doubles_nothing() -> None:
    """Clients that keep a history of their own may go on sending it."""
    run = rig()
    session_id = created(run)
    body = body_of(user("hi"), assistant("Hello."), user("more"))
    assert ask(run, body, continues(session_id), plain("Sure.")).sent == body
    assert messages_of(run, session_id) == (user("hi"), assistant("Hello."), user("more"), assistant("Sure."))


@pytest.mark.parametrize(
    "caller",
    [
        {},
        {"authorization": "Bearer of-b"},
        {"authorization": "Bearer of-a", "x-api-key": "k"},
        {"authorization": "Bearer of-a", "x-kronaxis-service": "shop"},
    ],
)
def test_for_anyone_but_its_owner_a_session_does_not_exist(caller: dict[str, str]) -> None:
    """The same answer as for an id that was never given, and nothing happens to the session."""
    run = rig()
    owner = {"authorization": "Bearer of-a"}
    session_id = ask(run, said("secret"), {**CREATE, **owner}, plain("Noted.")).session_id
    refused = [ask(run, said("more"), {**wish, **caller}) for wish in (continues(session_id), ends(session_id))]
    unknown = ask(run, said("more"), {**continues(UNKNOWN), **owner})
    for asked in (*refused, unknown):
        assert (asked.status, asked.body) == (404, unknown.body)
    assert unknown.error == {
        "message": "There is no such session.",
        "type": "invalid_request_error",
        "param": None,
        "code": "session_not_found",
    }
    assert messages_of(run, session_id) == (user("secret"), assistant("Noted."))
    assert [rejection.reason for _, rejection in run.telemetry.refusals] == ["session_not_found"] * 3
    assert begin(run, said("more"), {**continues(session_id), **owner}).status == 0


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        (continues("s-1"), "x-kronaxis-session-id"),
        (continues(UNKNOWN.upper()), "x-kronaxis-session-id"),
        ({**CREATE, **continues(UNKNOWN)}, "x-kronaxis-session-create"),
        ({"x-kronaxis-session-create": "yes"}, "x-kronaxis-session-create"),
        ({"x-kronaxis-session-end": "true"}, "x-kronaxis-session-end"),
        ({**continues(UNKNOWN), "x-kronaxis-session-end": "1"}, "x-kronaxis-session-end"),
    ],
)
def test_headers_that_make_no_sense_are_refused(headers: dict[str, str], param: str) -> None:
    """Before the store is asked."""
    run = rig()
    asked = ask(run, said("hi"), headers)
    assert (asked.status, asked.error["code"], asked.error["param"]) == (400, "bad_header", param)
    assert run.telemetry.store_calls == []


def test_a_good_answer_ends_a_session_that_is_to_end() -> None:
    """The turn is answered in full context; afterwards there is no session."""
    run = rig()
    session_id = created(run)
    asked = ask(run, said("bye"), ends(session_id), plain("Bye."))
    assert asked.sent == body_of(user("hi"), assistant("Hello."), user("bye"))
    assert (asked.status, asked.body) == (200, plain("Bye."))
    assert run.sessions.sessions == {}
    assert run.telemetry.evictions == ["ended"]
    assert run.telemetry.unsaved_turns == []
    assert ask(run, said("again"), continues(session_id)).status == 404


def test_the_headers_tell_how_long_the_context_is() -> None:
    """An estimate of four bytes a token for what no engine has counted yet, beside what it has counted."""
    run = rig()
    first = ask(run, said("hi"), CREATE, plain("Hello.", usage=(8, 2)))
    assert first.headers["x-kronaxis-session-tokens"] == "8"
    second = ask(run, said("more"), continues(first.session_id), plain("Sure.", usage=None))
    assert second.headers["x-kronaxis-session-tokens"] == "18"
    assert run.sessions.sessions[first.session_id].meta.tokens == 18
    third = ask(run, said("more"), continues(first.session_id), plain("Sure.", usage=None))
    assert third.headers["x-kronaxis-session-tokens"] == "26"
    assert run.telemetry.tokens_saved == [10, 18]


def test_the_estimate_learns_from_what_the_engine_counts() -> None:
    """16 tokens for an array of 32 bytes: two bytes a token from then on."""
    run = rig()
    first = ask(run, said("hi"), CREATE, plain("Hello.", usage=(16, 2)))
    second = begin(run, said("hi"), CREATE)
    second.answer_head(kind=JSON)
    assert (first.headers["x-kronaxis-session-tokens"], second.headers["x-kronaxis-session-tokens"]) == ("8", "15")


def test_without_session_headers_nothing_changes() -> None:
    """The plan is that of a router without sessions, and the store is not asked."""
    run, without = rig(), EngineRig(router(backend("a")))
    assert run.forward() == without.forward()
    none = {"x-kronaxis-session-create": "false", "x-kronaxis-session-end": "false"}
    asked = begin(run, said("hi"), none)
    assert asked.sent == said("hi")
    asked.answer_head(kind=JSON)
    assert asked.left
    assert run.telemetry.store_calls == []


def test_an_image_in_the_history_still_needs_a_backend_that_sees() -> None:
    """Although the new message has none."""
    sees = backend("eyes", capabilities=("vision",))
    run = EngineRig(with_sessions(router(backend("blind"), sees, chain=("blind", "eyes"))))
    image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    first = ask(run, said(image), CREATE, plain("A cat."))
    second = ask(run, said("What colour?"), continues(first.session_id), plain("Black."))
    assert [asked.headers["x-kronaxis-backend"] for asked in (first, second)] == ["eyes", "eyes"]
    assert ask(run, said("What colour?"), None, plain("?")).headers["x-kronaxis-backend"] == "blind"


def test_a_session_is_for_chat_completions_only() -> None:
    """The other APIs have no messages to keep, or keep their own."""
    plan = rig().plan(b'{"model":"m-a","input":"hi"}', head("/v1/responses", headers=CREATE))
    assert isinstance(plan, Answer)
    assert plan.status == 400
    assert b'"code":"sessions_unsupported"' in plan.body


async def test_where_no_answer_can_be_held_there_are_no_sessions() -> None:
    """Nor where the body is not shown; without session headers such requests are served."""
    run = rig()
    for body, can_follow in ((said("hi"), False), (None, True)):
        plan = await run.engine.plan(head(headers=CREATE), body, can_follow=can_follow)
        assert isinstance(plan, Answer)
        assert (plan.status, b'"code":"sessions_unsupported"' in plan.body) == (400, True)
        assert isinstance(await run.engine.plan(head(), body, can_follow=can_follow), Forward)
    assert run.telemetry.store_calls == []


def test_a_router_without_sessions_refuses_them() -> None:
    """400, as nothing would be kept; other requests are served."""
    run = EngineRig(router(backend("a")))
    for headers in (CREATE, continues(UNKNOWN)):
        status, error = run.refuse(said("hi"), head(headers=headers))
        assert (status, error["code"]) == (400, "sessions_disabled")
    assert isinstance(run.plan(), Forward)


def test_an_answer_without_a_body_is_not_kept() -> None:
    """There is nothing to keep, and no session to tell of."""
    run = rig()
    asked = begin(run, said("hi"), CREATE)
    (reply, _) = asked.run.feed(ResponseHeaders(204, "", True))
    assert isinstance(reply, HeadersReply)
    assert dict(reply.edits.set) == {"x-kronaxis-backend": "a", "x-kronaxis-rule": "default"}
    asked.settle(status=204)
    assert run.sessions.sessions == {}
    assert run.telemetry.unsaved_turns == ["failed"]
