"""Why an exchange failed."""

import pytest

from router_ext.health.failures import (
    CLIENT_LEFT,
    CUT,
    FIRST_TOKEN_TIMEOUT,
    RATE_LIMITED,
    SERVER_ERROR,
    STREAM_ERROR,
    TIMEOUT,
    TRUNCATED,
    UNREACHABLE,
    failure_of,
    is_backend_error,
    succeeded,
)
from router_ext.model.outcome import StreamEnd
from tests.fakes.domain import record


@pytest.mark.parametrize(
    ("flags", "status", "failure"),
    [
        ((), 200, None),
        ((), 404, None),
        ((), 499, None),
        ((), 500, "upstream_5xx"),
        ((), 503, "upstream_5xx"),
        (("RL",), 429, None),
        (("DC",), 0, "client_left"),
        (("DR",), 200, "client_left"),
        (("DPE",), 0, "client_left"),
        (("UF",), 503, "upstream_unreachable"),
        (("UH",), 503, "upstream_unreachable"),
        (("NC",), 503, "upstream_unreachable"),
        (("DF",), 503, "upstream_unreachable"),
        (("UO",), 503, "upstream_unreachable"),
        (("UF", "URX"), 503, "upstream_unreachable"),
        (("UT",), 504, "timeout"),
        (("SI",), 200, "timeout"),
        (("DT",), 504, "timeout"),
        (("UMSDR",), 200, "timeout"),
        (("UC",), 200, "upstream_cut"),
        (("UR",), 503, "upstream_cut"),
        (("LR",), 503, "upstream_cut"),
        (("UPE",), 502, "upstream_cut"),
        (("UC", "DC"), 200, "client_left"),
        (("UT", "UC"), 504, "timeout"),
    ],
)
def test_the_flags_say_more_than_the_status(flags: tuple[str, ...], status: int, failure: str | None) -> None:
    """A client that left comes first: it says nothing about the backend. 4xx answers are no failures."""
    assert failure_of(record("t-1", status, flags=flags)) == failure


@pytest.mark.parametrize(
    ("end", "status", "flags", "failure"),
    [
        (StreamEnd.UNKNOWN, 200, (), None),
        (StreamEnd.WHOLE, 200, (), None),
        (StreamEnd.ERROR, 200, (), "stream_error"),
        (StreamEnd.TRUNCATED, 200, (), "stream_truncated"),
        (StreamEnd.TRUNCATED, 299, (), "stream_truncated"),
        (StreamEnd.TRUNCATED, 300, (), None),
        (StreamEnd.TRUNCATED, 199, (), None),
        (StreamEnd.ERROR, 404, (), None),
        (StreamEnd.ERROR, 500, (), "upstream_5xx"),
        (StreamEnd.TRUNCATED, 200, ("DC",), "client_left"),
        (StreamEnd.TRUNCATED, 200, ("UC",), "upstream_cut"),
        (StreamEnd.ERROR, 200, ("SI",), "timeout"),
        (StreamEnd.TRUNCATED, 200, ("RL",), "stream_truncated"),
    ],
)
def test_a_stream_that_ends_badly_fails_a_good_answer(
    end: StreamEnd, status: int, flags: tuple[str, ...], failure: str | None
) -> None:
    """A failing flag says more: a stream that the client left has no last word either."""
    assert failure_of(record("t-1", status, flags=flags, stream_end=end)) == failure


@pytest.mark.parametrize(
    ("status", "flags", "end", "whole"),
    [
        (199, (), StreamEnd.UNKNOWN, False),
        (200, (), StreamEnd.UNKNOWN, True),
        (299, (), StreamEnd.WHOLE, True),
        (300, (), StreamEnd.UNKNOWN, False),
        (200, ("DC",), StreamEnd.UNKNOWN, False),
        (200, (), StreamEnd.ERROR, False),
        (200, (), StreamEnd.TRUNCATED, False),
    ],
)
def test_only_a_whole_good_answer_is_a_success(
    status: int, flags: tuple[str, ...], end: StreamEnd, whole: bool
) -> None:
    """A 2xx status alone is not enough."""
    assert succeeded(record("t-1", status, flags=flags, stream_end=end)) is whole


@pytest.mark.parametrize(
    ("failure", "counts"),
    [
        (None, False),
        (CLIENT_LEFT, False),
        (RATE_LIMITED, False),
        (UNREACHABLE, True),
        (TIMEOUT, True),
        (CUT, True),
        (SERVER_ERROR, True),
        (STREAM_ERROR, True),
        (TRUNCATED, True),
        (FIRST_TOKEN_TIMEOUT, True),
    ],
)
def test_a_breaker_counts_what_the_backend_did_wrong(failure: str | None, counts: bool) -> None:
    """Neither a client that left nor a backend that is busy."""
    assert is_backend_error(failure) is counts
