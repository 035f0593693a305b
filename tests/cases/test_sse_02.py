"""SSE-02: only CR and LF end a line."""

import pytest

from router_ext.stream.sse import SseReader, holds_token


@pytest.mark.parametrize("mark", ["\u0085", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_other_line_separators_are_ordinary_text(mark: str) -> None:
    """Unicode knows more of them; the standard of event streams does not."""
    data = f'{{"choices":[{{"index":0,"delta":{{"content":"a{mark}b"}}}}]}}'.encode()
    assert SseReader().feed(b"data: " + data + b"\n\ndata: [DONE]\n\n") == [data, b"[DONE]"]


def test_a_token_with_such_a_character_is_seen() -> None:
    """Its JSON arrives whole."""
    wire = 'data: {"choices":[{"index":0,"delta":{"content":"\u2028"}}]}\r\n\r\n'.encode()
    assert [holds_token(data) for data in SseReader().feed(wire)] == [True]
