"""What the quality gate says of an answer, and the closed words that it uses in headers, metrics and files."""

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from router_ext.model.outcome import Usage


class Quality(StrEnum):
    """The value of the header ``x-kronaxis-quality``: the answer passed, or the fallback's took its place, or nothing
    better than a bad answer was to be had, or nobody looked.
    """

    PASSED = "passed"
    FALLBACK = "fallback"
    FAILED = "failed"
    SKIPPED = "skipped"


class Fault(StrEnum):
    """Why an answer is not good enough; the first one that applies, in this order."""

    UPSTREAM = "upstream"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    MIN_LENGTH = "min_length"
    MIN_TOKENS = "min_tokens"
    INVALID_JSON = "invalid_json"
    SCHEMA = "schema"
    SCHEMA_TIMEOUT = "schema_timeout"


@dataclass(frozen=True, slots=True)
class Checks:
    """What an answer must be, beside fitting a schema. ``min_length`` counts characters; 0 asks for nothing."""

    min_length: int = 0
    min_tokens: int = 0
    valid_json: bool = False
    no_refusal: bool = False


class ToolCall(Struct, frozen=True):
    """A function that an answer calls. ``arguments`` is the engine's text, which should be a JSON object."""

    name: str
    arguments: str


class AnswerChoice(Struct, frozen=True):
    """One choice of an answer. ``text`` is None where the engine wrote no content; ``finish_reason`` and ``refusal``
    are "" where there is none.
    """

    index: int
    text: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    refusal: str = ""


class ReadAnswer(Struct, frozen=True):
    """An answer as the gate reads it, whether it was streamed or not. Choices by index."""

    choices: tuple[AnswerChoice, ...]
    usage: Usage | None = None


class SchemaText(Struct, frozen=True):
    """A JSON Schema that came with a request, as JSON text in UTF-8."""

    text: bytes


class BadSchema(Struct, frozen=True):
    """What a request gave as its schema cannot be one. ``reason`` is printable ASCII and quotes nothing of it."""

    reason: str


class SchemaVerdict(StrEnum):
    """What validation says: the value fits, it does not (or is no JSON), the schema cannot be used, or there was no
    answer within the time limit.
    """

    VALID = "valid"
    NOT_JSON = "not_json"
    INVALID = "invalid"
    BAD_SCHEMA = "bad_schema"
    TIMEOUT = "timeout"
