"""Streams that lose the event that reports their usage."""

import pytest

from router_ext.stream.without_usage import WithoutUsage
from tests.unit.engine.relays import DONE, LAST, TOKEN, USAGE


def _shown(*pieces: bytes) -> bytes:
    stream = WithoutUsage()
    return b"".join((*(stream.feed(piece) for piece in pieces), stream.feed(b"", end=True)))


def test_the_event_goes_and_the_rest_stays() -> None:
    """In the tail, and between tokens where an engine reports as it goes."""
    assert _shown(TOKEN + LAST + USAGE + DONE) == TOKEN + LAST + DONE
    assert _shown(TOKEN + USAGE + TOKEN + USAGE) == TOKEN + TOKEN


def test_it_goes_wherever_it_is_cut() -> None:
    """At each byte."""
    wire = TOKEN + USAGE + DONE
    assert all(_shown(wire[:cut], wire[cut:]) == TOKEN + DONE for cut in range(len(wire) + 1))


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}\n\n',
        b'data: {"choices":[],"usage":null}\n\n',
        b'data: {"choices":[],"prompt_filter_results":[]}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1},"error":{"message":"x"}}\n\n',
        b'data: {"usage":{"prompt_tokens":1}}\n\n',
        b'data: ["usage"]\n\n',
        b'data: "usage"\n\n',
        b': {"choices":[],"usage":{}}\n\n',
        b"\n\n\n",
        b'data: {"choices":[{"delta":{"content":"{\\"choices\\":[],\\"usage\\":{}}"}}]}\n\n',
    ],
)
def test_other_events_stay(event: bytes) -> None:
    """Those with choices, without counts, and errors; words of a model are no usage."""
    assert _shown(TOKEN + event + DONE) == TOKEN + event + DONE


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_any_way(end: bytes) -> None:
    """And an event may have a name, a comment and several lines of data."""
    usage = end.join([b"event: x", b": c", b'data: {"choices":[],', b'data: "usage":{"prompt_tokens":1}}', b"", b""])
    token, done = TOKEN.replace(b"\n", end), DONE.replace(b"\n", end)
    assert _shown(token + usage + done) == token + done


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        (USAGE.rstrip(), b""),
        (USAGE[:40], b""),
        (USAGE[:7], b""),
        (DONE.rstrip(), DONE.rstrip()),
        (TOKEN.rstrip(), TOKEN.rstrip()),
        (b": c", b": c"),
        (b"\n", b"\n"),
    ],
)
def test_what_is_left_without_a_blank_line(rest: bytes, shown: bytes) -> None:
    """A usage event goes there too, and JSON that breaks off, which may be the beginning of one."""
    assert _shown(LAST + rest) == LAST + shown
