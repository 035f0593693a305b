"""SSE-09: very long lines must neither break the reader nor fill the memory."""

import time
import tracemalloc

import pytest

from router_ext.stream.sse import MAX_LINE_BYTES, SseReader, holds_token

HEAD = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"'
TAIL = b'"}}]}}]}\n\n'
NEXT = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'


def _chunks(size: int) -> list[bytes]:
    line = HEAD + b"x" * size + TAIL + NEXT
    return [line[at : at + 16_384] for at in range(0, len(line), 16_384)]


@pytest.mark.parametrize("size", [65_537, MAX_LINE_BYTES - len(HEAD) - len(TAIL) + 2])
def test_a_line_up_to_1_mib_is_read(size: int) -> None:
    """The limit counts the line without its end."""
    reader = SseReader()
    events = [event for chunk in _chunks(size) for event in reader.feed(chunk)]
    assert [holds_token(event) for event in events] == [True, True]
    assert reader.skipped_lines == 0


@pytest.mark.parametrize("size", [MAX_LINE_BYTES - len(HEAD) - len(TAIL) + 3, 8_000_000])
def test_a_longer_line_is_skipped_and_the_next_event_is_read(size: int) -> None:
    """The reader says how many it skipped."""
    reader = SseReader()
    events = [event for chunk in _chunks(size) for event in reader.feed(chunk)]
    assert [holds_token(event) for event in events] == [True]
    assert reader.skipped_lines == 1


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 1000, b"data: " + b"x" * 1000 + b"\n"], ids=["line", "lines"])
def test_a_stream_without_an_end_holds_a_bounded_part_in_linear_time(piece: bytes) -> None:
    """16 MB of one line, or of data lines of one event: at most about 1 MiB is kept."""
    reader = SseReader()
    chunk = piece * 10
    tracemalloc.start()
    try:
        started = time.process_time()
        for _ in range(1600):
            assert reader.feed(chunk) == []
        spent_s = time.process_time() - started
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 1.5 * MAX_LINE_BYTES
    assert spent_s < 2
