"""How problems quote the file: short, on one line, and with a suggestion where a known word is close."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

_QUOTED_CHARS: Final = 60
_LISTED: Final = 20
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{0,48}")


def quoted(text: str) -> str:
    """``text`` in quotes, cut after 60 characters, with everything unprintable escaped."""
    return repr(text if len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "…")


def plain_key(key: str) -> str:
    """The leading part of a key that looks like a name, with ``…`` for the rest.

    ``{api_key:sk-1}`` without a space is one key in YAML, so the rest of an odd key may be a credential.
    """
    found = _PLAIN_KEY.match(key)
    name = found.group() if found else ""
    return name if name == key else name + "…"


def suggestion(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the closest of ``known``, else ``; known: a, b`` if these are few."""
    options = {option.lower(): option for option in known}
    close = difflib.get_close_matches(word[:64].lower(), options, n=1)
    if close:
        return f"; did you mean {quoted(options[close[0]])}?"
    shown = (name if name.isprintable() else quoted(name) for name in options.values())
    return f"; known: {', '.join(shown)}" if 0 < len(options) <= _LISTED else ""
