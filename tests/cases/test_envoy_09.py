"""ENVOY-09: a body mode that is changed anywhere but at the response's headers stays as it is."""

import asyncio

from tests.fakes.dispatcher import event_stream
from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.wire_http import HeaderList, Request, Response
from tests.fakes.wire_messages import REQUEST, RESPONSE, WAIT, ProcessingModes, Reply, body_message, headers_message
from tests.fakes.wire_stand import Stand, unix_stand
from tests.fakes.wire_stream import ProcessStream

STREAM = Request((b'{"model":"m","stream":true}',))
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
SSE = (("content-type", "text/event-stream"),)


async def _next(wire: ProcessStream) -> Reply:
    """The next message, which must come within a second."""
    async with asyncio.timeout(1):
        reply = await wire.receive()
    assert reply is not None
    return reply


async def _relayed(stand: Stand) -> list[Reply]:
    """Every message of the processor up to the first token, of a stream that goes on and on."""
    wire = ProcessStream(stand.channel)
    await wire.send(headers_message(REQUEST, STREAM.header_list(), False, ProcessingModes()))
    replies = [await _next(wire)]
    await wire.send(body_message(REQUEST, STREAM.body, True))
    replies.append(await _next(wire))
    await wire.send(headers_message(RESPONSE, HeaderList(((":status", "503"),)), False, None))
    replies += [await _next(wire) for _ in range(3)]
    wire.leave()
    await stand.quiet()
    return replies


def test_the_mode_changes_in_the_reply_to_the_response_headers() -> None:
    """And nowhere else: where it would do nothing, whole answers would be held back."""
    with unix_stand() as stand:
        stand.dispatcher.answer("gamma", event_stream(TOKEN, hangs=True))
        replies = stand.run(_relayed(stand))
    assert [(reply.kind, reply.takes_over) for reply in replies] == [
        ("request_headers", False),
        ("request_body", False),
        (WAIT, False),
        ("response_headers", True),
        ("response_body", False),
    ]


def test_the_first_token_is_sent_on_while_the_backend_still_generates() -> None:
    """Within a second, though the stream does not end."""
    with unix_stand() as stand:
        stand.dispatcher.answer("gamma", event_stream(TOKEN, hangs=True))
        mutation = stand.run(_relayed(stand))[-1].mutation
    assert mutation is not None
    assert mutation.streamed_response is not None
    assert (mutation.streamed_response.body, mutation.streamed_response.end_of_stream) == (TOKEN, False)


def test_a_good_stream_needs_no_change_of_its_mode() -> None:
    """The generated configuration streams responses: the fake Envoy shows and passes each chunk as it comes."""
    with unix_stand() as stand:
        answer = Response((TOKEN, TOKEN), headers=SSE)
        outcome = stand.run(FakeEnvoy(stand.channel, ProcessingModes()).exchange(STREAM, answer))
    assert outcome.answered == ["request_headers", "request_body", "response_headers", "response_body"]
    assert outcome.client is not None
    assert outcome.client.body == TOKEN + TOKEN
