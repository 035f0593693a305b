"""Any stream, cut anywhere."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from router_ext.stream.sse import SseReader

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
