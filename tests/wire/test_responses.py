"""Responses: nothing of them changes, the first token is timed, and the stream is left as soon as nothing needs it."""

import pytest

from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import HeaderList, Pairs, Request, Response
from tests.fakes.wire_messages import REQUEST, RESPONSE, ProcessingModes, body_message, headers_message
from tests.fakes.wire_stand import ALONE, Stand
from tests.fakes.wire_stream import ProcessStream
from tests.wire.modes import ALL_MODES, BODY_MODES, BUFFERED, DUPLEX, PRODUCT, STREAMED, shows_body

BODY = b'{"model":"m","stream":true}'
STREAMING = Request((BODY,))
SSE: Pairs = (("content-type", "text/event-stream; charset=utf-8"),)
JSON: Pairs = (("content-type", "application/json"),)

ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
FIRST = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
SECOND = b'data: {"choices":[{"delta":{"content":"lo"}}]}\n\n'
DONE = b"data: [DONE]\n\n"

REQUEST_PART = ["request_headers", "request_body"]


def test_a_streamed_answer_is_left_after_its_first_content(stand: Stand) -> None:
    """Each chunk up to the first content gets one reply: the role alone is no token. Then Envoy streams alone."""
    outcome = stand.run(stand.envoy(PRODUCT).exchange(STREAMING, Response((ROLE, FIRST, SECOND, DONE), headers=SSE)))
    assert outcome.answered == [*REQUEST_PART, "response_headers", "response_body", "response_body"]
    assert outcome.left
    assert outcome.client is not None
    assert outcome.client.body == ROLE + FIRST + SECOND + DONE


def test_the_first_token_is_the_first_content(stand: Stand) -> None:
    """Time to first token ends with the chunk that completes the first content: here 0.25 + 0.5 + 0.125 s."""

    async def stream() -> dict[str, object]:
        wire = ProcessStream(stand.channel)
        await wire.send(headers_message(REQUEST, STREAMING.header_list(), False, PRODUCT))
        await wire.receive()
        await wire.send(body_message(REQUEST, BODY, True))
        decided = await wire.receive()
        assert decided is not None
        for seconds, message in (
            (0.25, headers_message(RESPONSE, HeaderList(((":status", "200"), *SSE)), False, None)),
            (0.5, body_message(RESPONSE, ROLE + FIRST[:20], False)),
            (0.125, body_message(RESPONSE, FIRST[20:] + SECOND, False)),
        ):
            stand.clock.advance(seconds)
            await wire.send(message)
            assert await wire.receive() is not None
        stand.clock.advance(9.0)
        assert await wire.receive() is None
        return decided.metadata()["router_ext"]

    decision_id = stand.run(stream())["id"]
    exchange = stand.engine.exchanges.get(str(decision_id))
    assert exchange is not None
    assert exchange.attempt.streamed_ttft_s == 0.875


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_a_streamed_answer_is_whole_wherever_it_is_cut(stand: Stand, modes: ProcessingModes) -> None:
    """Two chunks, in every pair of modes, and between them every offset: each pair starts at one of its own."""
    answer = ROLE + FIRST + DONE
    step = 8

    async def cut_everywhere() -> None:
        for at in range(ALL_MODES.index(modes) % step, len(answer) + 1, step):
            response = Response((answer[:at], answer[at:]), headers=SSE)
            outcome = await stand.envoy(modes).exchange(STREAMING, response)
            assert outcome.client is not None
            assert outcome.client.body == answer, at
            await send_access_log(stand.channel, [entry_of(outcome)])

    stand.run(cut_everywhere())
    assert stand.kept.faults == []
    times = {end.ttft_s for end in stand.kept.ends}
    # Without the body nobody knows that a stream was asked for: the last byte of the answer counts.
    unseen = None if shows_body(modes) else 0.2
    assert times == {0.0 if modes.response in (STREAMED, DUPLEX) else unseen}


@pytest.mark.parametrize("response_mode", BODY_MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize(
    "response",
    [
        Response((b'{"choices":', b"[]}"), headers=JSON, sized=True),
        Response((b"data: {}\n\n",), status=500, headers=SSE),
        Response((b"busy",), status=429, headers=(("retry-after", "1"),)),
        Response((b"moved",), status=200, headers=()),
    ],
    ids=["plain", "error stream", "error", "no content type"],
)
def test_other_answers_are_left_at_their_headers(stand: Stand, response_mode: object, response: Response) -> None:
    """Nothing in them is waited for, but full duplex carries the body to its end; nobody else can answer."""
    modes = next(modes for modes in ALL_MODES if (modes.request, modes.response) == (BUFFERED, response_mode))
    with stand.configured(ALONE):
        outcome = stand.run(stand.envoy(modes).exchange(Request((b'{"model":"m"}',)), response))
    bodies = ["response_body"] * len(response.chunks) if response_mode is DUPLEX else []
    assert outcome.answered == [*REQUEST_PART, "response_headers", *bodies]
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (response.status, response.body)


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_an_answer_of_headers_only_ends_the_stream(stand: Stand, modes: ProcessingModes) -> None:
    """Envoy's own 503 for an unreachable cluster may come without a body; nobody else can answer."""
    with stand.configured(ALONE):
        outcome = stand.run(stand.envoy(modes).exchange(STREAMING, Response(status=503, headers=())))
    assert outcome.answered[-1] == "response_headers"
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (503, b"")


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_the_client_learns_backend_and_rule(stand: Stand, modes: ProcessingModes) -> None:
    """Both headers replace those that a backend may send under the same names."""
    response = Response((b"{}",), headers=(("x-kronaxis-backend", "other"), ("x-served-by", "engine-1")))
    outcome = stand.run(stand.envoy(modes).exchange(STREAMING, response))
    assert outcome.client is not None
    lines = [pair for pair in outcome.client.headers.pairs if pair[0].startswith("x-")]
    expected = [("x-kronaxis-backend", "alpha"), ("x-kronaxis-rule", "default"), ("x-served-by", "engine-1")]
    assert sorted(lines) == expected


@pytest.mark.parametrize("response_mode", [STREAMED, DUPLEX], ids=lambda mode: mode.name)
def test_an_answer_without_a_content_type_is_timed_when_a_stream_was_asked_for(
    stand: Stand, response_mode: object
) -> None:
    """Some servers leave the content type of an event stream out."""
    modes = next(modes for modes in ALL_MODES if (modes.request, modes.response) == (BUFFERED, response_mode))
    outcome = stand.run(stand.envoy(modes).exchange(STREAMING, Response((FIRST, DONE), headers=())))
    exchange = stand.engine.exchanges.get(outcome.decision_id)
    assert exchange is not None
    assert exchange.attempt.streamed_ttft_s == 0.0


@pytest.mark.parametrize("request_mode", BODY_MODES, ids=lambda mode: mode.name)
def test_full_duplex_sends_every_byte_of_an_answer_on(stand: Stand, request_mode: object) -> None:
    """Binary data in chunks of every size, with and without trailers, once and in order."""
    modes = next(modes for modes in ALL_MODES if (modes.request, modes.response) == (request_mode, DUPLEX))
    answer = bytes(range(256))

    async def every_size() -> None:
        for size in (1, 2, 3, 85, 255, 256):
            chunks = tuple(answer[i : i + size] for i in range(0, 256, size))
            for trailers in (None, (("x-sum", "1"),)):
                response = Response((*chunks, b""), headers=SSE, trailers=trailers)
                outcome = await stand.envoy(modes).exchange(STREAMING, response)
                assert outcome.client is not None
                assert outcome.client.body == answer
                assert outcome.answered.count("response_trailers") == (0 if trailers is None else 1)

    stand.run(every_size())
    assert stand.kept.faults == []


def test_an_early_answer_does_not_cut_a_full_duplex_request(stand: Stand) -> None:
    """A backend may answer before the request has ended; what remains of the request still goes through here."""
    modes = ProcessingModes(DUPLEX, STREAMED)
    upload = Request((b"one", b"two"), target="/v1/files")

    async def answer_early() -> list[str]:
        wire = ProcessStream(stand.channel)
        headers = HeaderList(((":status", "200"), *JSON))
        await wire.send(headers_message(REQUEST, upload.header_list(), False, modes))
        await wire.send(body_message(REQUEST, b"one", False))
        await wire.send(headers_message(RESPONSE, headers, False, None))
        kinds = [reply.kind for _ in range(3) if (reply := await wire.receive()) is not None]
        assert await wire.send(body_message(REQUEST, b"two", True))
        kinds += [reply.kind for _ in range(1) if (reply := await wire.receive()) is not None]
        return kinds

    assert stand.run(answer_early()) == ["request_headers", "request_body", "response_headers", "request_body"]
