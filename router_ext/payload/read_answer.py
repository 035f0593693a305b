"""Answers as the quality gate reads them: of chat completions and of completions, every choice, plain or streamed.

The plain and the streamed form of one answer read alike. Texts hold no lone surrogates: a half of a character that has
no fellow is U+FFFD.
"""

from typing import Final

from router_ext.model.gate import AnswerChoice, ReadAnswer
from router_ext.model.outcome import Usage
from router_ext.payload.answer_pieces import ENTRY_BYTES, Calls, Texts, read_json

MAX_ANSWER_BYTES: Final = 32 << 20
"""Most that is held of one streamed answer, as of a session's message."""

_TEXT_PARTS: Final = ("text", "output_text")


def plain_answer(body: bytes) -> ReadAnswer | None:
    """The answer that came as one JSON object, with ``NaN`` and ``Infinity`` outside of strings read as null.

    None when it is none of either API: no JSON, or without a list of choices. What is no object in that list is no
    choice; a choice without an index has that of its place.
    """
    completion = read_json(body)
    entries = _choices(completion)
    if entries is None:
        return None
    choices = [_plain_choice(entry).read(_index(entry, at)) for at, entry in enumerate(entries)]
    return ReadAnswer(_in_order(choices), _usage(completion))


class StreamedAnswerReader:
    """Merges the events of a streamed answer. Linear in the bytes that are fed.

    ``overflown``: more than ``limit`` bytes came, all choices together, and nothing is kept.
    """

    def __init__(self, limit: int = MAX_ANSWER_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._begun = False
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self.overflown = False

    def feed(self, data: bytes) -> None:
        """Takes the data of the next event. What is no chunk of either API says nothing."""
        event = read_json(data)
        self._usage = _usage(event) or self._usage
        entries = _choices(event)
        if self.overflown or entries is None:
            return
        self._begun = True
        self._size += sum(self._take(entry) for entry in entries)
        if self._size > self._limit:
            self.overflown = True
            self._choices = {}

    def _take(self, entry: dict[str, object]) -> int:
        """Returns how many bytes it added."""
        index = _index(entry, 0)
        known = len(self._choices)
        choice = self._choices.setdefault(index, _Choice())
        return choice.add(entry, entry.get("delta")) + ENTRY_BYTES * (len(self._choices) - known)

    def answer(self) -> ReadAnswer | None:
        """The answer so far; None before an event with a list of choices came, and when it is too large."""
        if not self._begun or self.overflown:
            return None
        return ReadAnswer(_in_order([choice.read(index) for index, choice in self._choices.items()]), self._usage)


class _Choice:
    """What came of one choice."""

    __slots__ = ("_calls", "_finish_reason", "_function", "_texts")

    def __init__(self) -> None:
        self._texts = Texts()
        self._calls = Calls()
        self._function = Texts()
        self._finish_reason = ""

    def add(self, entry: dict[str, object], message: object) -> int:
        """Takes a piece: a choice of either API, and its message or delta. Returns how many bytes it added."""
        reason = entry.get("finish_reason")
        added = self._texts.extend("content", entry.get("text"))
        if isinstance(reason, str) and reason:
            self._finish_reason = reason
            added += len(reason)
        return added + (self._merge(message) if isinstance(message, dict) else 0)

    def _merge(self, message: dict[str, object]) -> int:
        added = self._texts.extend("content", _text(message.get("content")))
        added += self._texts.extend("refusal", message.get("refusal"))
        calls, function = message.get("tool_calls"), message.get("function_call")
        if isinstance(calls, list):
            added += sum(self._calls.add(call) for call in calls if isinstance(call, dict))
        if isinstance(function, dict):
            added += self._function.extend_body(function)
        return added

    def read(self, index: int) -> AnswerChoice:
        """The choice as it is so far; a call of the old kind stands behind the others."""
        called = self._function.called()
        calls = self._calls.called() + ((called,) if called.name or called.arguments else ())
        refusal = self._texts.text("refusal") or ""
        return AnswerChoice(index, self._texts.text("content"), calls, self._finish_reason, refusal)


def _plain_choice(entry: dict[str, object]) -> _Choice:
    message = entry.get("message")
    choice = _Choice()
    choice.add(entry, _with_numbered_calls(message) if isinstance(message, dict) else None)
    return choice


def _with_numbered_calls(message: dict[str, object]) -> dict[str, object]:
    """Calls of a plain answer are whole: each is one by its place, whatever index or id it has."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    numbered = [{**call, "index": at} for at, call in enumerate(calls) if isinstance(call, dict)]
    return {**message, "tool_calls": numbered}


def _choices(value: object) -> list[dict[str, object]] | None:
    choices = value.get("choices") if isinstance(value, dict) else None
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else None


def _index(entry: dict[str, object], place: int) -> int:
    index = entry.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else place


def _in_order(choices: list[AnswerChoice]) -> tuple[AnswerChoice, ...]:
    return tuple(sorted(choices, key=lambda choice: choice.index))


def _text(content: object) -> object:
    """The texts of a list of parts as one; other content as it is."""
    if not isinstance(content, list):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") in _TEXT_PARTS)
    return "".join(text for text in texts if isinstance(text, str))


def _usage(value: object) -> Usage | None:
    """The token counts of an answer or an event, None when it has none."""
    usage = value.get("usage") if isinstance(value, dict) else None
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(_count(usage.get("prompt_tokens")) or 0, _count(usage.get("completion_tokens")) or 0, cached)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
