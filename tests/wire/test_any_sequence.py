"""Any exchange at all: random modes, chunks, trailers, repeats and leavings keep what every exchange must keep."""

from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import CHAT, Outcome, Pairs, Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand
from tests.wire.modes import ALL_MODES, PARTIAL, STREAMED, shows_body

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


NUMBERS: Final = st.one_of(st.none(), st.integers(1, 8))
ACTS: Final = st.one_of(
    st.builds(Act, repeats_last_chunk=st.booleans()),
    st.builds(Act, gone_after_message=NUMBERS, gone_after_reply=NUMBERS),
    st.builds(Act, closes_after_message=NUMBERS),
)


def sees_all(modes: ProcessingModes, request: Request) -> bool:
    """True where the whole body is known to be whole: a partly buffered one never is when trailers follow."""
    return shows_body(modes) and not (modes.request is PARTIAL and request.trailers is not None)


def check_bodies(modes: ProcessingModes, request: Request, response: Response, outcome: Outcome) -> None:
    """What the upstream and the client see of the bodies, as far as it came to that."""
    chat = request.target == CHAT
    expected = BODIES[request.body] if chat and sees_all(modes, request) else request.body
    if outcome.upstream is not None:
        assert outcome.upstream.body == expected
        assert outcome.upstream.cluster == "backend-alpha"
        assert outcome.upstream.trailers == request.trailers
    if outcome.client is not None and outcome.client.immediate:
        assert outcome.upstream is None
        assert expected is None
    elif outcome.client is not None:
        assert (outcome.client.status, outcome.client.body) == (response.status, response.body)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_exchange_keeps_bodies_counts_and_the_protocol(stand: Stand, data: st.DataObject) -> None:
    """Bodies whole, at most one decision, and nothing in flight after the entry or after reconciliation."""
    modes = data.draw(st.sampled_from(ALL_MODES))
    request, response, act = data.draw(requests(modes)), data.draw(responses()), data.draw(ACTS)
    stand.forget()

    async def play() -> Outcome:
        outcome = await stand.envoy(modes).exchange(request, response, act)
        await stand.quiet()
        await send_access_log(stand.channel, [entry_of(outcome)])
        return outcome

    outcome = stand.run(play())
    check_bodies(modes, request, response, outcome)
    assert len(stand.kept.decisions) <= 1
    assert stand.in_flight == 0 or not outcome.decision_id
    stand.lose_open_exchanges()
    assert (stand.in_flight, len(stand.engine.exchanges)) == (0, 0)
    assert stand.kept.faults == []
