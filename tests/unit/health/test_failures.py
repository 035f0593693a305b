"""Why an exchange failed."""

import pytest

from router_ext.health.failures import failure_of
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
