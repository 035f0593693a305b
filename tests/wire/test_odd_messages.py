"""Messages that come doubled, out of order or of an unknown kind: one reply for each, or none, never an error."""

import orjson
import pytest
from envoy_data_plane.envoy.service.ext_proc.v3 import ProcessingRequest

from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import HeaderList, Request
from tests.fakes.wire_messages import (
    REQUEST,
    RESPONSE,
    ProcessingModes,
    Reply,
    body_message,
    headers_message,
    trailers_message,
)
from tests.fakes.wire_stand import Stand
from tests.fakes.wire_stream import ProcessStream
from tests.wire.modes import ALL_MODES, PRODUCT, REQUEST_MODES

BODY = b'{"model":"m-a","messages":[]}'


def replies(stand: Stand, *messages: ProcessingRequest) -> list[Reply]:
    """Everything that the processor says to these messages, which Envoy sends in one go before it closes."""

    async def play() -> list[Reply]:
        stream = ProcessStream(stand.channel)
        for message in messages:
            await stream.send(message)
        return await stream.close()

    return stand.run(play())


def kinds(given: list[Reply]) -> list[str]:
    """The kinds of replies."""
    return [reply.kind for reply in given]


def request_headers(end: bool, modes: ProcessingModes | None = PRODUCT) -> ProcessingRequest:
    """The headers of a chat request."""
    return headers_message(REQUEST, Request((BODY,)).header_list(), end, modes)


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_body_01_a_repeated_last_chunk_is_decided_settled_and_sent_once(stand: Stand, modes: ProcessingModes) -> None:
    """BODY-01: Envoy can deliver the last chunk twice; bodies must not grow and requests not be counted twice."""
    request = Request((BODY[:20], BODY[20:]))
    outcome = stand.run(stand.envoy(modes).exchange(request, act=Act(repeats_last_chunk=True)))
    assert outcome.upstream is not None
    assert outcome.upstream.body in (BODY, BODY.replace(b"m-a", b"served-model"))
    assert len(stand.kept.decisions) == 1
    assert stand.in_flight == 1
    stand.run(send_access_log(stand.channel, [entry_of(outcome)]))
    assert len(stand.kept.ends) == 1
    assert stand.in_flight == 0


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_body_03_headers_without_a_body_get_one_answer(stand: Stand, modes: ProcessingModes) -> None:
    """BODY-03 A: a chat request that ends with its headers is refused once; nothing is awaited."""
    assert kinds(replies(stand, request_headers(True, modes))) == ["immediate_response"]


def test_body_03_a_body_before_headers_gets_one_answer(stand: Stand) -> None:
    """BODY-03 B: without headers nothing can be routed: one 400, then the end of the stream."""
    given = replies(stand, body_message(REQUEST, BODY, True))
    assert kinds(given) == ["immediate_response"]
    client = given[0].client()
    assert client.status == 400
    assert list(orjson.loads(client.body)["error"]) == ["message", "type", "param", "code"]


def test_body_03_bad_json_gets_one_answer(stand: Stand) -> None:
    """BODY-03 C: the headers' reply, one 400, and nothing for what Envoy sends after it."""
    given = replies(
        stand,
        request_headers(False),
        body_message(REQUEST, b'{"model":', True),
        headers_message(RESPONSE, HeaderList(((":status", "400"),)), True, None),
    )
    assert kinds(given) == ["request_headers", "immediate_response"]
    assert given[1].client().status == 400


def test_body_03_an_empty_last_chunk_is_an_empty_body(stand: Stand) -> None:
    """BODY-03 D: one 400, as for any body that is not JSON."""
    given = replies(stand, request_headers(False), body_message(REQUEST, b"", True))
    assert kinds(given) == ["request_headers", "immediate_response"]


def test_modes_that_envoy_does_not_tell_are_those_of_the_generated_configuration(stand: Stand) -> None:
    """Versions before 1.34 send no protocol configuration: BUFFERED requests are assumed."""
    given = replies(stand, request_headers(False, None), body_message(REQUEST, b'{"model":"served-model"}', True))
    assert kinds(given) == ["request_headers", "request_body"]
    assert given[1].metadata()["router_ext"]["backend"] == "alpha"


def test_a_message_of_no_known_kind_ends_the_stream(stand: Stand) -> None:
    """A newer Envoy may have kinds that this version cannot answer: it goes on alone."""
    assert replies(stand, ProcessingRequest()) == []
    assert replies(stand, request_headers(False), ProcessingRequest())[1:] == []
    assert stand.kept.faults == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (headers_message(RESPONSE, HeaderList(((":status", "503"),)), True, PRODUCT), ["response_headers"]),
        (headers_message(RESPONSE, HeaderList(((":status", "x"),)), True, PRODUCT), ["response_headers"]),
        (body_message(RESPONSE, b"late", True), ["response_body"]),
        (trailers_message(RESPONSE, ()), ["response_trailers"]),
        (trailers_message(REQUEST, ()), ["request_trailers"]),
    ],
    ids=["headers", "no status", "body", "response trailers", "request trailers"],
)
def test_a_stream_may_begin_anywhere(stand: Stand, message: ProcessingRequest, expected: list[str]) -> None:
    """A local reply before the request was shown, or a filter that shows the response only: one neutral reply."""
    given = replies(stand, message)
    assert kinds(given) == expected
    assert stand.kept.faults == []


def test_an_empty_stream_is_no_fault(stand: Stand) -> None:
    """Envoy opens and closes."""
    assert replies(stand) == []
    assert stand.kept.faults == []
