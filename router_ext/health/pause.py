"""How long a backend asks to be left alone."""

import math
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

MAX_PAUSE_S: Final = 60.0
"""The longest pause that is granted: a backend that asks for more is asked again after this."""

_PAUSING: Final = frozenset({429, 503})

_TIME: Final = r"\d\d:\d\d:\d\d"
_YEAR: Final = r"[1-9]\d{3}"
_HTTP_DATE: Final = re.compile(
    rf"[A-Z][a-z]{{2}}, \d\d [A-Z][a-z]{{2}} {_YEAR} {_TIME} GMT"
    rf"|[A-Z][a-z]{{5,8}}, \d\d-[A-Z][a-z]{{2}}-\d\d {_TIME} GMT"
    rf"|[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d {_TIME} {_YEAR}",
    re.ASCII,
)
"""The shapes of IMF-fixdate, RFC 850 and asctime (RFC 9110 section 5.6.7).

The library's parser is made for mail: it takes much that is no HTTP-date, such as the year 0026 for 2026, and raises
OverflowError on some of the rest.
"""


def retry_after_s(value: str, now_wall: float) -> float | None:
    """Seconds (≥ 0, finite) that a ``Retry-After`` header asks to wait; RFC 9110 section 10.2.3.

    ``value`` is whole seconds in ASCII digits, or an HTTP-date in any of its three forms; a date in the past is 0.0.
    ``now_wall`` is seconds since the epoch. None for anything else, and for a number too great for a float.
    """
    text = value.strip(" \t")
    if text.isascii() and text.isdigit():
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    date_s = _date_s(text)
    return None if date_s is None else max(0.0, date_s - now_wall)


def pause_s(status: int, retry_after: str, now_wall: float) -> float | None:
    """Seconds (> 0, at most ``MAX_PAUSE_S``) to send nothing to a backend that gave this answer.

    None when it asks for no pause: any status but 429 and 503, or a ``Retry-After`` that is empty, unreadable or over.
    """
    if status not in _PAUSING:
        return None
    seconds = retry_after_s(retry_after, now_wall)
    return min(seconds, MAX_PAUSE_S) if seconds else None


def _date_s(text: str) -> float | None:
    """Seconds since the epoch, None for what is no HTTP-date. All three forms are in GMT, said or not."""
    if _HTTP_DATE.fullmatch(text) is None:
        return None
    try:
        return parsedate_to_datetime(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
