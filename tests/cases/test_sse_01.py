"""SSE-01: a character may be cut in two by the network."""

import orjson

from router_ext.stream.sse import SseReader

WIRE = 'data: {"choices":[{"index":0,"delta":{"content":"café 🌍"}}]}\n\ndata: [DONE]\n\n'.encode()


def _text(*chunks: bytes) -> str:
    reader = SseReader()
    event, done = [event for chunk in chunks for event in reader.feed(chunk)]
    assert done == b"[DONE]"
    return str(orjson.loads(event)["choices"][0]["delta"]["content"])


def test_the_text_is_whole_for_every_place_of_the_cut() -> None:
    """Bytes are joined before they are decoded."""
    for at in range(len(WIRE) + 1):
        assert _text(WIRE[:at], WIRE[at:]) == "café 🌍"


def test_the_text_is_whole_byte_by_byte() -> None:
    """The smallest chunks there are."""
    assert _text(*(WIRE[at : at + 1] for at in range(len(WIRE)))) == "café 🌍"
