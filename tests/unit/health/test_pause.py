"""What a backend's Retry-After asks for, and how much of it is granted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.pause import MAX_PAUSE_S, pause_s, retry_after_s

NOW = 784_111_777.0
"""Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110."""


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("1", 1.0), ("120", 120.0), ("007", 7.0), (" 5\t", 5.0), ("86400", 86_400.0), ("9" * 300, 1e300)],
)
def test_digits_are_seconds(value: str, seconds: float) -> None:
    """Of any length that is a number; blanks around a header's value are not part of it."""
    assert retry_after_s(value, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 1.0),
        ("Sun, 06 Nov 1994 08:49:36 GMT", 0.0),
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30.0),
        ("Wednesday, 09-Nov-94 08:49:37 GMT", 259_200.0),
        ("Sun Nov  6 08:50:07 1994", 30.0),
        ("Wed Nov 16 08:49:37 1994", 864_000.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 252_618_189_022.0),
    ],
)
def test_dates_are_seconds_from_now(value: str, seconds: float) -> None:
    """IMF-fixdate, RFC 850 and asctime, all in GMT; the past is 0."""
    assert retry_after_s(value, NOW) == seconds


def test_a_date_is_not_rounded() -> None:
    """Half a second is left."""
    assert retry_after_s("Sun, 06 Nov 1994 08:49:38 GMT", NOW + 0.5) == 0.5


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "soon",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "1_000",
        "0x10",
        "5 s",
        "5, 6",
        "5\n",
        "inf",
        "nan",
        "\u0665",
        "\u00b2",
        "\uff15",
        "\u200b5",
        "\ud800",
        "9" * 400,
        "9" * 100_000,
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 +0100",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Abc 1994 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 0095 08:49:37 GMT",
        "Sun Nov  6 08:49:37 0095",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, \u0660\u0666 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT\n",
        "1 Nov , 08:49:37 GMT",
        "Xyz Nov  6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
    ],
)
def test_anything_else_is_no_wait(value: str) -> None:
    """Negative, fractional, not ASCII, too great, or no HTTP-date."""
    assert retry_after_s(value, NOW) is None


DATES = (
    r"\A[A-Z][a-z]{2}, [0-9]{2} (Jan|Feb|[A-Z][a-z]{2}) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\Z",
    r"\A[A-Z][a-z]{5,8}, [0-9]{2}-(Jan|Feb|[A-Z][a-z]{2})-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\Z",
    r"\A(Sun|Mon|[A-Z][a-z]{2}) (Jan|Feb|[A-Z][a-z]{2}) [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}\Z",
)


@given(st.text() | st.from_regex(r"\A[0-9]+\Z") | st.one_of([st.from_regex(date) for date in DATES]))
def test_no_value_raises(value: str) -> None:
    """It comes from a backend, and a backend may be anything; what is understood is never negative."""
    seconds = retry_after_s(value, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize(
    ("status", "pause"), [(200, None), (428, None), (429, 5.0), (430, None), (500, None), (502, None), (503, 5.0)]
)
def test_busy_answers_alone_ask_for_a_pause(status: int, pause: float | None) -> None:
    """429 and 503."""
    assert pause_s(status, "5", NOW) == pause


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [
        ("", None),
        ("soon", None),
        ("-5", None),
        ("0", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", None),
        ("1", 1.0),
        ("59", 59.0),
        ("60", 60.0),
        ("61", 60.0),
        ("9" * 300, 60.0),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),
        ("Sun, 06 Nov 1994 08:50:38 GMT", 60.0),
    ],
)
def test_a_pause_is_granted_up_to_a_minute(retry_after: str, pause: float | None) -> None:
    """One that is over, or that cannot be read, is none."""
    assert MAX_PAUSE_S == 60.0
    assert pause_s(503, retry_after, NOW) == pause
