"""The verdict on a text. It may take any time and memory, so it is for a process that can be killed."""

from functools import lru_cache
from typing import Final

from jsonschema_rs import (
    FancyRegexOptions,
    RegexOptions,
    ValidationError,
    ValidationErrorKind,
    Validator,
    validator_for,
)

from router_ext.model.gate import SchemaVerdict
from router_ext.schemas.limits import check_schema
from router_ext.schemas.strict import UNREADABLE, parse

MAX_COMPILED: Final = 64
"""Most schemas that stay compiled. One of 2 KB takes 70 KiB, and with its check 0.5 ms to compile."""

_LINEAR: Final = RegexOptions()

_BACKTRACKING: Final = FancyRegexOptions(backtrack_limit=1_000_000)
"""For look-around and back references, which the linear engine does not have. The limit is reached in about 20 ms."""

_Compiled = tuple[Validator, RegexOptions | FancyRegexOptions]


class Law:
    """Judges texts, and keeps the schemas compiled that it saw last."""

    def __init__(self) -> None:
        self._compiled = lru_cache(MAX_COMPILED)(compile_schema)

    def verdict(self, schema: bytes | None, text: bytes) -> SchemaVerdict:
        """See ``SchemaVerdict``. Without a schema every JSON text is valid; a bad schema comes before a bad text.

        TIMEOUT: a pattern needed more steps than it may take. A text that is nested more deeply than the recursion
        limit of the interpreter is no JSON (RFC 8259, section 9, allows limits).
        """
        compiled = None if schema is None else self._compiled(schema)
        if schema is not None and compiled is None:
            return SchemaVerdict.BAD_SCHEMA
        try:
            value = parse(text)
        except UNREADABLE:
            return SchemaVerdict.NOT_JSON
        return SchemaVerdict.VALID if compiled is None else _judged(compiled, value)


def compile_schema(text: bytes) -> _Compiled | None:
    """The validator and the engine of its patterns; None for what ``check_schema`` or its draft's meta-schema refuses.

    The draft is that of ``$schema``, else 2020-12. Formats are annotations in all drafts. Nothing is ever fetched.
    """
    if check_schema(text) is not None:
        return None
    return compile_unchecked(text.decode())


def compile_unchecked(text: str) -> _Compiled | None:
    """``compile_schema`` without ``check_schema``."""
    for patterns in (_LINEAR, _BACKTRACKING):
        try:
            return validator_for(text, pattern_options=patterns, validate_formats=False, offline=True), patterns
        except ValueError:
            # The library names a pattern that its engine does not take and every other problem alike.
            continue
    return None


def _judged(compiled: _Compiled, value: object) -> SchemaVerdict:
    validator, patterns = compiled
    if validator.is_valid(value):
        return SchemaVerdict.VALID
    if patterns is _BACKTRACKING and any(map(_gave_up, validator.iter_errors(value))):
        return SchemaVerdict.TIMEOUT
    return SchemaVerdict.INVALID


def _gave_up(error: ValidationError) -> bool:
    """Whether a pattern took more steps than it may, in the schema or in a branch of it."""
    match error.kind:
        case ValidationErrorKind.BacktrackLimitExceeded():
            return True
        case (
            ValidationErrorKind.AnyOf(context=branches)
            | ValidationErrorKind.OneOfNotValid(context=branches)
            | ValidationErrorKind.OneOfMultipleValid(context=branches)
        ):
            return any(_gave_up(inner) for branch in branches for inner in branch)
    return False
