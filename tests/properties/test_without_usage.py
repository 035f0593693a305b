"""Any stream with usage events in it, cut anywhere."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from router_ext.stream.without_usage import WithoutUsage

USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}'
LINES = st.lists(
    st.sampled_from(
        [
            USAGE,
            b'data: {"id":"x", "choices": [], "usage": {"total_tokens": 3}}',
            b'data: {"choices":[{"delta":{"content":"\\"usage\\""}}],"usage":{"completion_tokens":1}}',
            b'data: {"choices":[],"usage":null}',
            b"data: [DONE]",
            b": ping",
            b"",
        ]
    ),
    max_size=12,
)


def _is_usage(event: bytes) -> bool:
    return event == USAGE or event.startswith(b'data: {"id":"x"')


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 600), max_size=12))
def test_the_client_gets_the_stream_without_them(events: list[bytes], line_end: bytes, cuts: list[int]) -> None:
    """Byte for byte, whatever the chunking."""
    blank = line_end * 2
    wire = b"".join(event + blank for event in events)
    wanted = b"".join(event + blank for event in events if not _is_usage(event))
    places = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    stream, single = WithoutUsage(), WithoutUsage()
    chunked = b"".join(stream.feed(wire[a:b]) for a, b in pairwise(places)) + stream.feed(b"", end=True)
    by_byte = b"".join(single.feed(wire[i : i + 1]) for i in range(len(wire))) + single.feed(b"", end=True)
    assert chunked == by_byte == wanted


@given(st.lists(st.sampled_from([USAGE, b"data: [DONE]", b"\n", b"\r", b"\r\n"]), max_size=20), st.integers(0, 200))
def test_one_cut_changes_nothing(pieces: list[bytes], cut: int) -> None:
    """However line ends are mixed."""
    wire = b"".join(pieces)
    whole, halves = WithoutUsage(), WithoutUsage()
    assert halves.feed(wire[:cut]) + halves.feed(wire[cut:], end=True) == whole.feed(wire, end=True)
