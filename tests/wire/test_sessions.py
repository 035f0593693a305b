"""Sessions over the wire: kept before a client has the end of its answer, and never acknowledged without being kept."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router_ext.config.sections import Server, Sessions
from router_ext.engine.engine import Engine
from router_ext.stream.effects import AskFollow, Followed
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.envoy_client import Act, Respond
from tests.fakes.session_turns import (
    CREATE,
    DONE,
    UNSAVED,
    UNSAVED_EVENT,
    assistant,
    body_of,
    continues,
    ends,
    events,
    plain,
    said,
    user,
)
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import Client, Outcome, Request, Response, Upstream
from tests.fakes.wire_messages import ProcessingModes, ProtocolViolation
from tests.fakes.wire_stand import CONFIG, Stand, unix_stand
from tests.wire.modes import ALL_MODES, DUPLEX, PRODUCT, can_relay, shows_body

SESSIONS: Final = replace(CONFIG, server=Server(sessions=Sessions(enabled=True)))
SSE: Final = (("content-type", "text/event-stream"),)
STREAM: Final = b"".join(events("Hel", "lo."))
STORED: Final = (user("hi"), assistant("Hello."))
TOLD: Final = ("x-kronaxis-session-id", "x-kronaxis-session-tokens")
FOLLOWING: Final = [
    modes for modes in ALL_MODES if can_relay(modes) and shows_body(modes) and modes.response is not DUPLEX
]


class FaultyEngine(Engine):
    """Fails at every piece that says ``FAULT``; what it answers to ``SNOW`` cannot be sent."""

    async def follow(self, decision_id: str, ask: AskFollow) -> Followed:
        """Fails there."""
        if b"FAULT" in ask.data:
            raise RuntimeError("no follow")
        if b"SNOW" in ask.data:
            return Followed(b"{}", 503, (("x-name", "\N{SNOWMAN}"),), done=True)
        return await super().follow(decision_id, ask)


@pytest.fixture(scope="module")
def shared_stand() -> Iterator[Stand]:
    """A server with sessions."""
    with unix_stand(FaultyEngine) as stand, stand.configured(SESSIONS):
        yield stand


def ask(
    stand: Stand,
    body: bytes,
    headers: Mapping[str, str],
    response: Response | Respond,
    modes: ProcessingModes = PRODUCT,
    act: Act | None = None,
) -> Outcome:
    """One exchange, settled by its access log entry; bodies are for the model of the first backend."""

    async def play() -> Outcome:
        renamed = body.replace(b'"m-a"', b'"served-model"')
        request = Request((renamed[:9], renamed[9:]), headers=tuple(headers.items()))
        outcome = await stand.envoy(modes).exchange(request, response, act)
        await stand.quiet()
        await send_access_log(stand.channel, [entry_of(outcome)])
        return outcome

    return stand.run(play())


def streamed(*chunks: bytes) -> Response:
    """An event stream in these chunks."""
    return Response(chunks, headers=SSE)


def client(outcome: Outcome) -> Client:
    """What the client got."""
    assert outcome.client is not None
    return outcome.client


def told(outcome: Outcome) -> tuple[int, bytes]:
    """Status and body as the client gets them."""
    return client(outcome).status, client(outcome).body


def session_of(outcome: Outcome) -> str:
    """The session that the client is told of."""
    return client(outcome).headers.get("x-kronaxis-session-id") or ""


def created(stand: Stand) -> str:
    """A session of one turn."""
    return session_of(ask(stand, said("hi"), CREATE, Response((plain("Hello."),))))


def messages(stand: Stand) -> list[tuple[bytes, ...]]:
    """The messages of every session."""
    return [session.messages for session in stand.sessions.sessions.values()]


def sent(outcome: Outcome) -> bytes:
    """The body that the backend got."""
    assert outcome.upstream is not None
    return outcome.upstream.body.replace(b'"served-model"', b'"m-a"')


def test_the_modes_that_follow_are_those_that_show_a_request_whole() -> None:
    """And do not show its answer before they are asked to hold it."""
    assert len(FOLLOWING) == 8


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("trailers", [None, (("x-sum", "1"),)])
def test_a_plain_answer_is_kept(
    stand: Stand, modes: ProcessingModes, sized: bool, trailers: tuple[tuple[str, str], ...] | None
) -> None:
    """It comes through unchanged, with the session's headers; the next turn brings it."""
    answer = plain("Hello.")
    response = Response((answer[:20], answer[20:]), sized=sized, trailers=trailers)
    outcome = ask(stand, said("hi"), CREATE, response, modes)
    assert told(outcome) == (200, answer)
    assert (list(stand.sessions.sessions), messages(stand)) == ([session_of(outcome)], [STORED])
    assert int(client(outcome).headers.get("x-kronaxis-session-tokens") or 0) > 0
    more = ask(stand, said("more"), continues(session_of(outcome)), Response((plain("Sure."),)), modes)
    assert sent(more) == body_of(*STORED, user("more"))
    assert messages(stand) == [(*STORED, user("more"), assistant("Sure."))]
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
def test_a_streamed_answer_is_kept(stand: Stand, modes: ProcessingModes) -> None:
    """In every mode, also where Envoy shows it only when it is held."""
    outcome = ask(stand, said("hi", stream=True), CREATE, streamed(*events("Hel", "lo.")), modes)
    assert told(outcome) == (200, STREAM)
    assert messages(stand) == [STORED]
    more = ask(stand, said("more", stream=True), continues(session_of(outcome)), streamed(*events("Sure.")), modes)
    assert sent(more) == body_of(*STORED, user("more"), stream=True)
    assert messages(stand) == [(*STORED, user("more"), assistant("Sure."))]
    assert stand.kept.faults == []


@st.composite
def cuts(draw: st.DrawFn) -> tuple[bytes, ...]:
    """The stream in up to eight chunks, some of them empty."""
    points = sorted(draw(st.lists(st.integers(0, len(STREAM)), max_size=7)))
    return tuple(STREAM[a:b] for a, b in zip([0, *points], [*points, len(STREAM)], strict=True))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=cuts(), away=st.booleans())
def test_in_any_chunking_the_client_has_the_last_event_only_of_what_is_kept(
    stand: Stand, chunks: tuple[bytes, ...], away: bool
) -> None:
    """Otherwise it has whole events, and then an error."""
    stand.forget()
    stand.sessions.read_only = away
    outcome = ask(stand, said("hi", stream=True), CREATE, streamed(*chunks))
    status, body = told(outcome)
    assert status == 200
    if away:
        assert body.endswith(UNSAVED_EVENT)
        before = body.removesuffix(UNSAVED_EVENT)
        assert STREAM.startswith(before)
        assert before.endswith(b"\n\n") or not before
        assert (messages(stand), stand.kept.unsaved_turns) == ([], ["store"])
    else:
        assert (body, messages(stand), stand.kept.unsaved_turns) == (STREAM, [STORED], [])
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
def test_a_plain_answer_that_cannot_be_kept_becomes_a_503(stand: Stand, modes: ProcessingModes) -> None:
    """With its own length, and nothing of a session or of the answer's coding."""
    headers = (("content-type", "a/b"), ("content-encoding", "identity"), ("x-own", "1"))
    session_id = created(stand)
    for wish in (CREATE, continues(session_id), ends(session_id)):

        def respond(_: Upstream) -> Response:
            stand.sessions.away = True
            return Response((plain("Hello."),), headers=headers, sized=True)

        outcome = ask(stand, said("hi"), wish, respond, modes)
        stand.sessions.away = False
        assert told(outcome) == (503, UNSAVED)
        assert dict(client(outcome).headers.pairs) == {
            ":status": "503",
            "content-type": "application/json",
            "content-length": str(len(UNSAVED)),
            "retry-after": "2",
            "x-own": "1",
            "x-kronaxis-backend": "alpha",
            "x-kronaxis-rule": "default",
        }
        assert messages(stand) == [STORED]
    assert stand.kept.unsaved_turns == ["store"] * 3
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
def test_a_stream_that_cannot_be_kept_never_ends_well(stand: Stand, modes: ProcessingModes) -> None:
    """An error event comes in the place of the last piece, which is all of it where the stream is held."""

    def respond(_: Upstream) -> Response:
        stand.sessions.away = True
        return streamed(*events("Hel", "lo."))

    outcome = ask(stand, said("hi", stream=True), CREATE, respond, modes)
    passed = STREAM.removesuffix(DONE) if modes.response.name == "STREAMED" else b""
    assert told(outcome) == (200, passed + UNSAVED_EVENT)
    assert messages(stand) == []
    assert stand.kept.faults == []


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_creates_nothing_and_tells_of_no_session(stand: Stand, status: int, stream: bool) -> None:
    """Nor does the error of the backend that was asked next."""
    stand.dispatcher.answer("gamma", CannedAnswer(status, body=(b"second",)))
    outcome = ask(stand, said("hi", stream=stream), CREATE, Response((b"first",), status))
    assert told(outcome) == (status, b"first" if status in (400, 404) else b"second")
    assert not any(name in client(outcome).headers for name in TOLD)
    assert messages(stand) == []
    assert stand.kept.unsaved_turns == ["failed"]


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
@pytest.mark.parametrize(
    "response", [Response((b"busy",), 503), Response(status=503, headers=())], ids=["body", "head"]
)
def test_a_turn_that_fails_over_is_kept(stand: Stand, modes: ProcessingModes, response: Response) -> None:
    """The second backend gets the same hydrated body under its own model name."""
    session_id = created(stand)
    stand.dispatcher.answer("gamma", CannedAnswer(body=(plain("Sure."),)))
    outcome = ask(stand, said("more"), continues(session_id), response, modes)
    assert told(outcome) == (200, plain("Sure."))
    assert session_of(outcome) == session_id
    assert stand.dispatcher.calls[0].body == body_of(*STORED, user("more")).replace(b'"m-a"', b'"gemini-pro"')
    assert messages(stand) == [(*STORED, user("more"), assistant("Sure."))]
    assert stand.kept.faults == []


def test_while_the_store_is_away_only_sessions_are_refused(stand: Stand) -> None:
    """503 with ``Retry-After`` from the router itself; no backend is asked."""
    session_id = created(stand)
    stand.sessions.away = True
    outcome = ask(stand, said("more"), continues(session_id), Response((b"{}",)))
    assert told(outcome) == (503, UNSAVED)
    assert client(outcome).immediate
    assert client(outcome).headers.get("retry-after") == "2"
    assert outcome.upstream is None
    served = ask(stand, said("hi"), {}, Response((plain("Hello."),)))
    assert told(served) == (200, plain("Hello."))


@pytest.mark.parametrize("other", [{}, {"authorization": "Bearer b"}])
def test_nothing_of_a_session_reaches_anybody_else(stand: Stand, other: dict[str, str]) -> None:
    """404, and no backend is asked."""
    owner = {"authorization": "Bearer a"}
    first = ask(stand, said("secret"), {**CREATE, **owner}, Response((plain("Noted."),)))
    outcome = ask(stand, said("more"), {**continues(session_of(first)), **other}, Response((b"{}",)))
    assert client(outcome).status == 404
    assert outcome.upstream is None
    assert messages(stand) == [(user("secret"), assistant("Noted."))]


def test_a_session_ends_with_a_good_answer(stand: Stand) -> None:
    """Not with a bad one."""
    session_id = created(stand)
    ask(stand, said("bye"), ends(session_id), Response((b"no",), 400))
    assert messages(stand) == [STORED]
    ask(stand, said("bye", stream=True), ends(session_id), streamed(*events("Bye.")))
    assert messages(stand) == []
    assert stand.kept.evictions == ["ended"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_at_any_message_leaves_a_whole_session(stand: Stand, stream: bool) -> None:
    """Its turn is there as a whole, once its last piece was answered, or not at all; and it is told which."""
    pieces = streamed(*events("Hel", "lo.")) if stream else Response((plain("Hello."),))
    whole = ask(stand, said("hi", stream=stream), CREATE, pieces)
    for act in (
        *(Act(gone_after_message=number) for number in range(1, len(whole.sent) + 1)),
        *(Act(gone_after_reply=number) for number in range(1, len(whole.answered) + 1)),
    ):
        stand.forget()
        outcome = ask(stand, said("hi", stream=stream), CREATE, pieces, act=act)
        assert outcome.gone
        if outcome.answered == whole.answered:
            assert messages(stand) == [STORED]
        elif act.gone_after_message != len(whole.sent):
            assert messages(stand) == []
        assert messages(stand) in ([], [STORED])
        if outcome.decision_id:
            assert stand.kept.unsaved_turns == ([] if messages(stand) else ["client_left"])
        assert stand.kept.faults == []


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
def test_a_fault_never_acknowledges_a_plain_answer(stand: Stand, modes: ProcessingModes) -> None:
    """It becomes a 500 that tells of no session."""
    outcome = ask(stand, said("hi"), CREATE, Response((plain("FAULT"),), sized=True), modes)
    status, body = told(outcome)
    assert (status, b'"code":"internal_error"' in body) == (500, True)
    assert not any(name in client(outcome).headers for name in TOLD)
    assert messages(stand) == []
    assert [str(error) for _, error in stand.kept.faults] == ["no follow"]


@pytest.mark.parametrize("modes", FOLLOWING, ids=str)
def test_a_fault_never_acknowledges_a_stream(stand: Stand, modes: ProcessingModes) -> None:
    """An error event and an end come before whatever is left of it."""
    outcome = ask(stand, said("hi", stream=True), CREATE, streamed(*events("a", "FAULT", "b")), modes)
    _, body = told(outcome)
    first_error, first_end = body.index(b'data: {"error"'), body.index(DONE)
    assert first_error < first_end
    assert b'"code":"internal_error"' in body[first_error:first_end]
    assert b"FAULT" not in body
    assert messages(stand) == []
    assert [str(error) for _, error in stand.kept.faults] == ["no follow"]


def test_a_reply_that_cannot_be_sent_ends_the_stream_as_an_error(stand: Stand) -> None:
    """Envoy fails closed on it: an end in order would let the answer pass, and the client take it for kept."""
    with pytest.raises(ProtocolViolation, match="INTERNAL"):
        ask(stand, said("hi"), CREATE, Response((plain("SNOW"),)))
    assert messages(stand) == []
    assert [place for place, _ in stand.kept.faults] == ["ext_proc"]


@pytest.mark.parametrize("modes", [modes for modes in ALL_MODES if modes not in FOLLOWING], ids=str)
def test_modes_in_which_no_answer_can_be_held_have_no_sessions(stand: Stand, modes: ProcessingModes) -> None:
    """400 before any backend is asked."""
    outcome = ask(stand, said("hi"), CREATE, Response((b"{}",)), modes)
    assert (client(outcome).status, b'"code":"sessions_unsupported"' in client(outcome).body) == (400, True)
    assert outcome.upstream is None
