"""How a stream ended by its own words, as Envoy reads them from the answer."""

import json
from itertools import pairwise
from pathlib import Path

from tests.envoy.envoygen.streams import CHAT, COMPLETIONS, MESSAGES, RESPONSES, end_of_each, streams

TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n'
DELTA = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"x"}\n\n'
BLOCK = b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}\n\n'
DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
ERROR = b'data: {"error":{"message":"engine overloaded","type":"server_error","code":503}}\n\n'


def _generated(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}, separators=(",", ":")).encode() + b"\n\n"


WHOLE = {
    "done": (CHAT, TEXT + DONE),
    "done only": (CHAT, DONE),
    "done without a space": (CHAT, TEXT + b"data:[DONE]\n\n"),
    "done without a line end": (CHAT, TEXT + b"data: [DONE]"),
    "done after CR LF": (CHAT, TEXT.replace(b"\n", b"\r\n") + b"data: [DONE]\r\n\r\n"),
    "done after CR": (CHAT, TEXT.replace(b"\n", b"\r") + b"data: [DONE]\r\r"),
    "finish reason": (CHAT, TEXT + STOP),
    "finish reason with a space": (CHAT, STOP.replace(b'":"', b'": "')),
    "finish reason of two words": (CHAT, STOP.replace(b"stop", b"tool_calls")),
    "text completion": (COMPLETIONS, b'data: {"choices":[{"text":"x","finish_reason":"length"}]}\n\n'),
    "query string": (CHAT + "?api-version=1", STOP),
    "response completed": (RESPONSES, DELTA + b'event: response.completed\ndata: {"response":{}}\n\n'),
    "response completed, no name": (RESPONSES, b'data: {"type":"response.completed","response":{}}\n\n'),
    "response completed, type last": (RESPONSES, b'data: {"response":{},"type": "response.completed"}\n\n'),
    "response incomplete": (RESPONSES, b'event: response.incomplete\ndata: {"type":"response.incomplete"}\n\n'),
    "message stop": (MESSAGES, BLOCK + b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    "message stop, no name": (MESSAGES, BLOCK + b'data: {"type": "message_stop"}\n\n'),
    "message stop and done": (MESSAGES, BLOCK + b'data: {"type":"message_stop"}\n\n' + DONE),
}

ERRORS = {
    "error object": (CHAT, TEXT + ERROR),
    "error object first": (CHAT, ERROR),
    "error object and done": (CHAT, TEXT + ERROR + DONE),
    "error object after a last word": (CHAT, STOP + ERROR + DONE),
    "error object with spaces": (CHAT, b'data: { "error" : { "code": 500}}\n\n'),
    "error object without a space": (CHAT, b'data:{"error":{"code":500}}\n\n'),
    "error text": (CHAT, b'data: {"error":"model runner stopped"}\n\n'),
    "error object of a name": (CHAT, b'data: {"object":"error","message":"m","code":500}\n\n' + DONE),
    "error after CR LF": (CHAT, TEXT.replace(b"\n", b"\r\n") + ERROR),
    "error after CR": (CHAT, TEXT.replace(b"\n", b"\r") + ERROR),
    "error as a field": (CHAT, b'error: {"code":500,"message":"m"}\n\n'),
    "error as a name": (CHAT, b'event: error\ndata: {"message":"m"}\n\n' + DONE),
    "finish reason": (CHAT, STOP.replace(b"stop", b"error") + DONE),
    "finish reason of one of two": (CHAT, STOP + STOP.replace(b"stop", b"error") + DONE),
    "responses": (RESPONSES, DELTA + b'event: error\ndata: {"type":"error","code":"server_error"}\n\n'),
    "responses, no name": (RESPONSES, DELTA + b'data: {"type": "error","code":"server_error"}\n\n'),
    "response failed": (RESPONSES, DELTA + b'event: response.failed\ndata: {"response":{}}\n\n'),
    "response failed, no name": (RESPONSES, DELTA + b'data: {"type":"response.failed","response":{}}\n\n'),
    "messages": (
        MESSAGES,
        BLOCK + b'event:error\r\ndata: {"type":"error","error":{"type":"overloaded_error"}}\r\n\r\n',
    ),
}

TRUNCATED = {
    "text": (CHAT, TEXT),
    "nothing": (CHAT, b""),
    "comments": (CHAT, b": keep-alive\n\n"),
    "null error": (CHAT, b'data: {"error":null,"choices":[]}\n\n'),
    "error inside": (CHAT, b'data: {"choices":[],"warning":{"error":{"code":1}}}\n\n'),
    "empty finish reason": (CHAT, STOP.replace(b"stop", b"")),
    "half a finish reason": (CHAT, STOP.partition(b'p"')[0]),
    "an end of another API": (RESPONSES, STOP),
    "type of another name": (MESSAGES, b'data: {"type":"error_rate"}\n\n'),
    "event of another name": (CHAT, b"event: error_rate\ndata: {}\n\n"),
    "generated error line": (CHAT, _generated('\ndata: {"error":{"code":503}}\n')),
    "generated name": (CHAT, _generated("\nevent: error\n")),
    "generated done line": (CHAT, _generated("\ndata: [DONE]\n\n")),
    "generated finish reason": (CHAT, _generated('{"finish_reason":"stop"}')),
    "generated keys": (CHAT, _generated('"error":{')),
    "echoed type": (RESPONSES, b'data: {"type":"response.created","metadata":{"type":"response.failed"}}\n\n'),
    "echoed error": (RESPONSES, b'data: {"type":"response.created","metadata":{"type":"error"}}\n\n'),
    "generated types": (RESPONSES, DELTA.replace(b":x", rb':"\"type\":\"response.completed\"')),
    "generated type": (MESSAGES, BLOCK.replace(b'"x"', b'"message_stop"')),
}

MARKERS = {
    "done": (CHAT, b"\n\ndata: [DONE]\n\n", "whole"),
    "finish reason": (CHAT, b'{"finish_reason": "stop"}', "whole"),
    "response completed": (RESPONSES, b'"type":"response.completed"', "whole"),
    "message stop": (MESSAGES, b"\r\nevent: message_stop\r\n", "whole"),
    "error object": (CHAT, b'\n\ndata: {"error":{}}', "error"),
    "error name": (CHAT, b"\r\n\r\nevent: error\r\n", "error"),
    "finish reason error": (CHAT, b'{"finish_reason":"error"}', "error"),
    "response failed": (RESPONSES, b'\ndata: {"type":"response.failed"', "error"),
}


async def test_a_last_word_makes_a_stream_whole(tmp_path: Path) -> None:
    """Each API has its own, with any line end."""
    assert await end_of_each(tmp_path, WHOLE) == dict.fromkeys(WHOLE, "whole")


async def test_an_error_event_makes_a_stream_an_error(tmp_path: Path) -> None:
    """Whatever comes before it or after it."""
    assert await end_of_each(tmp_path, ERRORS) == dict.fromkeys(ERRORS, "error")


async def test_a_stream_without_a_last_word_is_truncated(tmp_path: Path) -> None:
    """Generated text that looks like one does not count: in JSON its quotes and line ends are escaped."""
    assert await end_of_each(tmp_path, TRUNCATED) == dict.fromkeys(TRUNCATED, "truncated")


async def test_an_end_is_found_wherever_it_is_cut(tmp_path: Path) -> None:
    """Every marker, split over two pieces at every byte."""
    expected = []
    async with streams(tmp_path) as s:
        for path, marker, end in MARKERS.values():
            for at in range(1, len(marker)):
                await s.send([TEXT + marker[:at], marker[at:]], path)
                expected.append(end)
        assert await s.ends(len(expected)) == expected


async def test_an_end_is_found_byte_by_byte(tmp_path: Path) -> None:
    """The smallest pieces there are."""
    async with streams(tmp_path) as s:
        for path, marker, _ in MARKERS.values():
            body = TEXT + marker
            await s.send([body[at : at + 1] for at in range(len(body))], path)
        assert await s.ends(len(MARKERS)) == [end for _, _, end in MARKERS.values()]


async def test_a_stream_with_an_end_is_not_changed(tmp_path: Path) -> None:
    """The client gets the backend's bytes, at every place of a cut through the last event."""
    body = TEXT + STOP + DONE
    async with streams(tmp_path) as s:
        for start, stop in pairwise(range(len(TEXT), len(body), 7)):
            assert await s.send([body[:start], body[start:stop], body[stop:]]) == body
        for path, body in [*WHOLE.values(), *ERRORS.values()]:
            assert await s.send([body], path) == body
