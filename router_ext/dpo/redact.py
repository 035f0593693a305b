"""Masks personal data and credentials in a text.

Every pattern takes time linear in the text: it begins at a fixed word or where a run of its characters begins, and what
it may go back over is bounded.

A text that is JSON, as a whole, in a fence or inside of a string, stays JSON: a masked number becomes a string.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import orjson

EMAIL: Final = "[EMAIL]"
PHONE: Final = "[PHONE]"
CARD: Final = "[CARD]"
KEY: Final = "[KEY]"

_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
"""A block without an end goes on to the end of the text: it may have been cut."""

_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9_\-])(?:"
    r"sk-(?=[A-Za-z_\-]*+[0-9])[A-Za-z0-9_\-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[opsur]_[A-Za-z0-9]{36,}"
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|glpat-[A-Za-z0-9_\-]{20,}"
    r"|hf_[A-Za-z0-9]{30,}"
    r"|xox[abeprs]-[A-Za-z0-9\-]{10,}"
    r"|AIza[A-Za-z0-9_\-]{35}"
    r"|eyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*"
    r")"
)
"""Keys by what providers let them begin with, and JSON Web Tokens."""

_BEARER: Final = re.compile(
    r"(?<![A-Za-z0-9])(bearer[ \t]{1,4})(?=[A-Za-z._~+/=\-]*+[0-9])[A-Za-z0-9._~+/=\-]{8,}", re.IGNORECASE
)
_URL_LOGIN: Final = re.compile(r"(://)[^\s/:@\[\]]{0,128}:[^\s/@\[\]]{1,256}@")

_CREDENTIAL: Final = (
    r"(?:password|passwd|passphrase|pwd|secret|secret[_\-]?key|secret[_\-]?access[_\-]?key|client[_\-]?secret"
    r"|api[_\-]?key|access[_\-]?key|private[_\-]?key|(?:access|auth|refresh)[_\-]?token)"
)
_ASSIGNED: Final = re.compile(
    rf"(?<![A-Za-z0-9])({_CREDENTIAL}[\"']?[ \t]{{0,4}})"
    r"(=(?!=)[ \t]{0,4}|:[ \t]{0,4}(?=[\"']|[^\s\"'0-9]{0,256}[0-9]))"
    r"(?:\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s\"'&;,<>()\[\]{}]{4,})",
    re.IGNORECASE,
)
"""``password=…`` and ``password: …``. A bare word behind a colon counts with a digit only: prose and type declarations
have colons too.
"""
_CREDENTIAL_KEY: Final = re.compile(rf"{_CREDENTIAL}\Z", re.IGNORECASE)

_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]++@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62})\.)+[A-Za-z][A-Za-z0-9\-]+"
)

_DIGIT_RUN: Final = re.compile(r"(?<![\w.])[0-9](?:[ \-]?[0-9])+")
_DIGITS: Final = re.compile(r"[0-9]+")
_CARD_MIN: Final = 13
_CARD_MAX: Final = 19
_CARD_STARTS: Final = frozenset("23456")
"""First digits of the networks; times and counters in 13 digits and more begin with 1 for the next decades."""

_PHONE: Final = re.compile(
    r"(?<![\w+.\-/])(?:"
    r"\+[0-9](?:[ .\-/]?\(?[0-9]\)?){7,14}"
    r"|(?:1[ .\-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .\-])[0-9]{3}[ .\-][0-9]{4}"
    r"|(?=0[0-9]{1,4}[ /\-])(?!0[0-9][/\-][0-9]{2}[/\-])0(?:[ /\-]?[0-9]){8,11}"
    r")(?![\w:]|[.\-][0-9])"
)
"""With the code of a country, or of North America, or with the 0 of a national call, dates left out. The last two need
separators: digits alone are more often something else.
"""

_LINES: Final = re.compile(r".{1,65536}[^\n]*+", re.DOTALL)
"""Whole lines, 64 KiB or more: no pattern but ``_PEM`` goes over a line end. Other threads get their turn only between
two calls of the engine of patterns, which takes 5 ms for one such piece.
"""

_FENCE: Final = re.compile(r"(^[ \t]{0,16}(?:```|~~~)[^\n]*$)", re.MULTILINE)
_CONTAINER: Final = re.compile(r"\s*[\[{]")
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_JSON_PART: Final = re.compile(rf"(?:({_STRING})(\s*+:\s*+))?({_STRING}|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+\-]?[0-9]++)?)")


def redacted(text: str) -> str:
    """``text`` with e-mail addresses, phone numbers, card numbers (whose check digit is right), keys, tokens and
    passwords in their masks.
    """
    return "".join(_redacted_block(block) for block in _FENCE.split(text))


def _redacted_block(text: str) -> str:
    return _JSON_PART.sub(_redacted_part, text) if _is_json(text) else _masked(text)


def _is_json(text: str) -> bool:
    """True for an object or an array."""
    if not _CONTAINER.match(text):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _redacted_part(found: re.Match[str]) -> str:
    """A key with its value, or a value alone. What holds nothing to mask stays as it is written."""
    name, colon, value = found[1], found[2], found[3]
    if name is None:
        return _redacted_value(value)
    masked = f'"{KEY}"' if _CREDENTIAL_KEY.search(orjson.loads(name)) else _redacted_value(value)
    return _redacted_value(name) + colon + masked


def _redacted_value(written: str) -> str:
    value = orjson.loads(written)
    text = value if isinstance(value, str) else written
    masked = redacted(text)
    return written if masked == text else orjson.dumps(masked).decode()


def _masked(text: str) -> str:
    return "".join(_masked_lines(lines) for lines in _LINES.findall(_PEM.sub(KEY, text)))


def _masked_lines(text: str) -> str:
    for step in _STEPS:
        text = step(text)
    return text


def _assigned(found: re.Match[str]) -> str:
    """Keeps the quotes."""
    value = found[0][len(found[1]) + len(found[2]) :]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found[1]}{found[2]}{quote}{KEY}{quote}"


def _without_cards(found: re.Match[str]) -> str:
    """Masks the cards among groups of digits, which may stand beside other numbers."""
    run = found[0]
    following = found.string[found.end() : found.end() + 2]
    if following[:1].isalpha() or following[:1] == "_" or (following[:1] == "." and following[1:].isdigit()):
        return run
    pieces: list[str] = []
    end = 0
    for start, stop in _cards(run):
        pieces += (run[end:start], CARD)
        end = stop
    return "".join((*pieces, run[end:]))


def _cards(run: str) -> Iterator[tuple[int, int]]:
    """The places of card numbers: groups in a row that have 13 to 19 digits and the right check digit."""
    groups = [found.span() for found in _DIGITS.finditer(run)]
    at = 0
    while at < len(groups):
        length = _card_length(run, groups[at : at + _CARD_MAX])
        if length:
            yield groups[at][0], groups[at + length - 1][1]
        at += length or 1


def _card_length(run: str, groups: list[tuple[int, int]]) -> int:
    """How many groups from the first are a card number; 0: none."""
    digits = ""
    for count, (start, stop) in enumerate(groups, 1):
        if len(digits) + stop - start > _CARD_MAX:
            return 0
        digits += run[start:stop]
        if len(digits) >= _CARD_MIN and digits[0] in _CARD_STARTS and _passes_luhn(digits):
            return count
    return 0


def _passes_luhn(digits: str) -> bool:
    """The check digit of ISO/IEC 7812: from the right every second digit counts twice, less 9 above 9."""
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_STEPS: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: _TOKEN.sub(KEY, text),
    lambda text: _BEARER.sub(rf"\1{KEY}", text),
    lambda text: _URL_LOGIN.sub(rf"\1{KEY}@", text),
    lambda text: _ASSIGNED.sub(_assigned, text),
    lambda text: _EMAIL.sub(EMAIL, text),
    lambda text: _DIGIT_RUN.sub(_without_cards, text),
    lambda text: _PHONE.sub(PHONE, text),
)
"""Keys first: their characters may look like the rest."""
