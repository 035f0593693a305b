"""Any exchange at all: random modes, chunks, trailers, repeats and leavings keep what every exchange must keep."""

from dataclasses import replace
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import CHAT, Outcome, Pairs, Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand
from tests.wire.modes import ALL_MODES, PARTIAL, STREAMED, can_relay, shows_body

BODIES: Final = {
    b'{"model":"m","stream":true}': b'{"model":"served-model","stream":true}',
    b'{ "messages": [] }': b'{"model":"served-model", "messages": [] }',
    b'{"model":"served-model"}': b'{"model":"served-model"}',
    b'{"model":': None,
    b"": None,
}
"""Bodies of chat requests with what the upstream gets of them; None where they are refused."""

ANSWERS: Final = (
    b"",
    b'{"choices":[]}',
    b'data: {"choices":[{"delta":{"role":"assistant"}}]}\r\n\r\ndata: {"choices":[{"delta":{"content":"x"}}]}\r\n\r\n',
)
SECOND: Final = (
    (None, 503, b'"code":"upstream_unavailable"'),
    (CannedAnswer(body=(b'{"choices":', b"[]}")), 200, b'{"choices":[]}'),
    (CannedAnswer(429, body=(b"busy",)), 429, b"busy"),
    (event_stream(ANSWERS[2][:40], ANSWERS[2][40:], b"data: [DONE]\n\n"), 200, ANSWERS[2] + b"data: [DONE]\n\n"),
)
"""What the second backend answers, with the status that a client gets of it, and bytes of the body."""
TRAILERS: Final = (("x-sum", "1"),)


@st.composite
def cut(draw: st.DrawFn, body: bytes) -> tuple[bytes, ...]:
    """A body in up to six chunks, empty ones among them; at least one."""
    points = sorted(draw(st.lists(st.integers(0, len(body)), max_size=5)))
    return tuple(body[a:b] for a, b in zip([0, *points], [*points, len(body)], strict=True))


@st.composite
def requests(draw: st.DrawFn, modes: ProcessingModes) -> Request:
    """A chat request or an upload. Trailers cannot come where Envoy holds them back."""
    held_back = modes.before_headers and modes.request is STREAMED
    trailers = None if held_back else draw(st.sampled_from((None, TRAILERS)))
    chunks = draw(st.sampled_from(tuple(BODIES)).flatmap(cut))
    return Request(chunks, target=draw(st.sampled_from((CHAT, "/v1/files"))), trailers=trailers)


@st.composite
def responses(draw: st.DrawFn) -> Response:
    """Any status, with and without a content type, whole or in pieces."""
    types: tuple[Pairs, ...] = ((), (("content-type", "text/event-stream"),), (("content-type", "application/json"),))
    chunks = draw(st.one_of(st.just(()), st.sampled_from(ANSWERS).flatmap(cut)))
    trailers = draw(st.sampled_from((None, TRAILERS)))
    return Response(chunks, draw(st.sampled_from((200, 404, 503))), draw(st.sampled_from(types)), trailers)


Second = tuple[CannedAnswer | None, int, bytes]
NUMBERS: Final = st.one_of(st.none(), st.integers(1, 8))
ACTS: Final = st.one_of(
    st.builds(Act, repeats_last_chunk=st.booleans()),
    st.builds(Act, gone_after_message=NUMBERS, gone_after_reply=NUMBERS),
    st.builds(Act, closes_after_message=NUMBERS),
)


def sees_all(modes: ProcessingModes, request: Request) -> bool:
    """True where the whole body is known to be whole: a partly buffered one never is when trailers follow."""
    return shows_body(modes) and not (modes.request is PARTIAL and request.trailers is not None)


def check_bodies(
    modes: ProcessingModes, request: Request, response: Response, second: Second, outcome: Outcome
) -> None:
    """What the upstream and the client see of the bodies, as far as it came to that."""
    chat = request.target == CHAT
    expected = BODIES[request.body] if chat and sees_all(modes, request) else request.body
    if outcome.upstream is not None:
        assert outcome.upstream.body == expected
        assert outcome.upstream.cluster == "backend-alpha"
        assert outcome.upstream.trailers == request.trailers
    client = outcome.client
    if client is None:
        return
    if expected is None:
        assert client.immediate
        assert outcome.upstream is None
    elif chat and response.status == 503 and can_relay(modes) and sees_all(modes, request):
        assert client.status == second[1]
        assert second[2] in client.body
        # Nothing but whole answers: a body follows headers, unless those of the upstream were all.
        assert client.immediate is (not response.chunks and response.trailers is None)
    else:
        assert (client.status, client.body, client.immediate) == (response.status, response.body, False)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_exchange_keeps_bodies_counts_and_the_protocol(stand: Stand, data: st.DataObject) -> None:
    """Bodies whole, at most one decision a backend, and nothing in flight after the entry or after reconciliation."""
    modes = data.draw(st.sampled_from(ALL_MODES))
    request, response, act = data.draw(requests(modes)), data.draw(responses()), data.draw(ACTS)
    second = data.draw(st.sampled_from(SECOND))
    stand.forget()
    stand.dispatcher.answer("gamma", None if second[0] is None else replace(second[0]))

    async def play() -> Outcome:
        outcome = await stand.envoy(modes).exchange(request, response, act)
        await stand.quiet()
        await send_access_log(stand.channel, [entry_of(outcome)])
        return outcome

    outcome = stand.run(play())
    check_bodies(modes, request, response, second, outcome)
    assert [decision.backend for decision in stand.kept.decisions] in ([], ["alpha"], ["alpha", "gamma"])
    assert len({decision.id for decision in stand.kept.decisions}) <= 1
    assert stand.in_flight == 0 or not outcome.decision_id
    stand.lose_open_exchanges()
    assert (stand.in_flight, len(stand.engine.exchanges)) == (0, 0)
    assert stand.kept.faults == []
