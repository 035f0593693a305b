"""The bytes of requests and answers."""

from benchmarks.sessions.wire import head, read_head


def test_a_head_ends_with_the_length_and_an_empty_line() -> None:
    """Every byte that a request has before its body."""
    expected = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-b: c\r\ncontent-length: 7\r\n\r\n"
    assert head((("host", "a"), ("x-b", "c")), 7) == expected


def test_an_answers_head_has_a_status_and_headers_in_lower_case() -> None:
    """A colon in a value belongs to it."""
    raw = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nx-url: http://a:1\r\n\r\n"
    assert read_head(raw) == (503, {"retry-after": "2", "x-url": "http://a:1"})
