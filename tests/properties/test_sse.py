"""Any stream, cut anywhere."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from router_ext.stream.sse import SseReader, WholeEvents

PIECES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b"data:", b": c", b"data: \xe2\x80\xa8", b"event: e", b" "]),
    max_size=20,
)


def _reference(wire: bytes) -> list[bytes]:
    """The whole text at once, line by line as the standard describes it."""
    lines = wire.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    events: list[bytes] = []
    data: list[bytes] = []
    for line in lines:
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        if not line:
            events += [b"\n".join(data)] if data else []
            data = []
    return events


@given(PIECES, st.lists(st.integers(0, 200), max_size=10))
def test_chunking_changes_nothing(pieces: list[bytes], cuts: list[int]) -> None:
    """Every way to cut the stream gives the events of the whole."""
    wire = b"".join(pieces)
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    chunked, single = SseReader(), SseReader()
    events = [event for a, b in pairwise(places) for event in chunked.feed(wire[a:b])]
    by_byte = [event for i in range(len(wire)) for event in single.feed(wire[i : i + 1])]
    assert events == by_byte == _reference(wire)


@given(PIECES, st.lists(st.integers(0, 200), max_size=10))
def test_whole_events_lose_nothing_and_end_at_blank_lines(pieces: list[bytes], cuts: list[int]) -> None:
    """Whatever the line ends are, and however they are mixed."""
    wire = b"".join(pieces)
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    events = WholeEvents()
    given_on = [piece for a, b in pairwise(places) if (piece := events.feed(wire[a:b]))]
    assert b"".join(given_on) + events.rest == wire
    assert all(piece.endswith((b"\n\n", b"\n\r\n", b"\r\r")) for piece in given_on)


@given(PIECES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 200), max_size=10))
def test_no_whole_event_is_held_back(pieces: list[bytes], line_end: bytes, cuts: list[int]) -> None:
    """Where all lines end alike, everything up to the last blank line has been given on, wherever it was cut."""
    wire = line_end.join(re.sub(rb"[\r\n]", b"", piece) for piece in pieces)
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    events = WholeEvents()
    for a, b in pairwise(places):
        events.feed(wire[a:b])
    assert line_end * 2 not in events.rest
