"""The kinds of names in a configuration."""

import re
from typing import Final

from router_ext.config.document import Scalar
from router_ext.config.reading import Reading
from router_ext.config.scalars import ScalarReader, printable, text, word

_BACKEND: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BACKEND_CHARS: Final = 63

MODEL: Final = printable(1, 256)
"""A model, alias or adapter name."""

TITLE: Final = printable(1, 128)
"""A name that may become a header's value: of a service."""

CAPABILITY: Final = word(64)
"""What a backend can do; free words that rules ask for."""

MATCHED: Final = printable(0, 256)
"""A value that a request must have; "" matches all."""


def declared(kind: str, reader: ScalarReader[str]) -> ScalarReader[str]:
    """``reader`` for a name that must be unique among its kind."""

    def declare(name: str, scalar: Scalar, reading: Reading) -> str:
        reading.declare(kind, name, scalar)
        return name

    return reader.finished(declare)


def _refer(name: str, scalar: Scalar, reading: Reading) -> str:
    if name:
        reading.refer(name, scalar)
    return name


BACKEND: Final = declared(
    "backend", text("1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit", _BACKEND, _BACKEND_CHARS)
)
RULE: Final = declared("rule", TITLE)
AB_TEST: Final = declared("A/B test", TITLE)

BACKEND_REF: Final = ScalarReader("the name of a backend", printable(1, 256).parse, finish=_refer)
"""A backend that must exist."""

OPTIONAL_BACKEND_REF: Final = ScalarReader("the name of a backend", printable(0, 256).parse, finish=_refer)
"""A backend that must exist, or ""."""
