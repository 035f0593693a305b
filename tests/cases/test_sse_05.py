"""SSE-05: the last chunk may have usage and no choice."""

import pytest

from router_ext.stream.sse import holds_token

USAGE = b'"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}'


@pytest.mark.parametrize("choices", [b'"choices":[],', b'"choices":null,', b""], ids=["empty", "null", "missing"])
def test_a_chunk_with_usage_alone_holds_no_token(choices: bytes) -> None:
    """And is no error."""
    assert not holds_token(b"{" + choices + USAGE)


def test_a_token_beside_a_null_usage_counts() -> None:
    """With its finish reason in the same chunk."""
    assert holds_token(b'{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":null}')
