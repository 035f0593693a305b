"""Any answer, plain or streamed, however it is cut and merged."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from router_ext.gate.checks import fault_before_json
from router_ext.gate.judged import texts_to_judge
from router_ext.gate.text import json_text
from router_ext.model.gate import AnswerChoice, Checks, Fault, ReadAnswer, ToolCall
from router_ext.payload.read_answer import StreamedAnswerReader, plain_answer
from router_ext.stream.sse import SseReader
from tests.properties.test_envelope import TEXTS, VALUES
from tests.properties.test_transcript import cut

NAMES = st.text("abc_", min_size=1, max_size=8)
CALLS = st.lists(st.builds(ToolCall, NAMES, TEXTS), max_size=3).map(tuple)
REASONS = st.sampled_from(["", "stop", "length", "tool_calls", "content_filter"])
CHOICE = st.builds(AnswerChoice, st.just(0), st.none() | TEXTS, CALLS, REASONS, TEXTS)
CHOICES = st.lists(CHOICE, min_size=1, max_size=3)


def numbered(choices: list[AnswerChoice]) -> ReadAnswer:
    """An answer with these choices, each by its place."""
    return ReadAnswer(
        tuple(
            AnswerChoice(at, choice.text, choice.tool_calls, choice.finish_reason, choice.refusal)
            for at, choice in enumerate(choices)
        )
    )


def plain(choice: AnswerChoice) -> dict[str, Any]:
    """A choice of a chat completion."""
    calls = [{"id": "c", "function": {"name": call.name, "arguments": call.arguments}} for call in choice.tool_calls]
    message = {"role": "assistant", "content": choice.text, "refusal": choice.refusal or None, "tool_calls": calls}
    return {"index": choice.index, "message": message, "finish_reason": choice.finish_reason or None}


@st.composite
def chunks(draw: st.DrawFn, choice: AnswerChoice) -> list[dict[str, Any]]:
    """Choices of events that stream one: the pieces of each text in order, texts and calls one behind the other."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for name, text in (("content", choice.text), ("refusal", choice.refusal or None)):
        deltas += [{name: piece} for piece in draw(cut(text))] if text is not None else []
    for at, call in enumerate(choice.tool_calls):
        deltas.append({"tool_calls": [{"index": at, "id": f"c{at}", "function": {"name": call.name}}]})
        pieces = draw(cut(call.arguments))
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": piece}}]} for piece in pieces]
    head = {"index": choice.index, "finish_reason": None}
    return [
        *({**head, "delta": delta} for delta in deltas),
        {**head, "delta": {}, "finish_reason": choice.finish_reason},
    ]


@st.composite
def woven(draw: st.DrawFn, lines: list[list[dict[str, Any]]]) -> list[bytes]:
    """Events that hold one or more of the pieces, those of one choice in order."""
    order = draw(st.permutations([number for number, line in enumerate(lines) for _ in line]))
    left = [iter(line) for line in lines]
    pieces = [next(left[number]) for number in order]
    ends = sorted(draw(st.lists(st.integers(0, len(pieces)), max_size=5)))
    groups = [pieces[start:end] for start, end in pairwise([0, *ends, len(pieces)])]
    return [json.dumps({"choices": group}).encode() for group in groups]


@given(CHOICES, st.data())
def test_a_streamed_answer_reads_as_the_plain_one(choices: list[AnswerChoice], data: st.DataObject) -> None:
    """However texts are cut, choices woven, pieces merged into events, and events cut by the network."""
    expected = numbered(choices)
    events = data.draw(woven([data.draw(chunks(choice)) for choice in expected.choices]))
    stream = b"".join(b"data: " + event + b"\n\n" for event in (*events, b"[DONE]"))
    ends = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    reader, streamed = SseReader(), StreamedAnswerReader()
    for start, end in pairwise([0, *ends, len(stream)]):
        for event in reader.feed(stream[start:end]):
            streamed.feed(event)
    body = json.dumps({"choices": [plain(choice) for choice in expected.choices]}).encode()
    assert streamed.answer() == plain_answer(body) == expected


@given(st.lists(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode())))
def test_no_body_and_no_event_raises(pieces: list[bytes]) -> None:
    """Any data gives an answer or none."""
    streamed = StreamedAnswerReader(200)
    for piece in pieces:
        plain_answer(piece)
        streamed.feed(piece)
    streamed.answer()


KEYS = ["content", "text", "refusal", "tool_calls", "function_call", "function", "type", "index", "name", "arguments"]
ODD = st.recursive(
    VALUES | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.fixed_dictionaries({}, optional={"message": ODD, "delta": ODD, "text": VALUES, "index": VALUES})))
def test_odd_choices_can_be_judged(choices: list[dict[str, Any]]) -> None:
    """Whatever stands in them: their texts are texts that can be written as UTF-8."""
    body = json.dumps({"choices": choices}).encode()
    streamed = StreamedAnswerReader()
    streamed.feed(body)
    for answer in (plain_answer(body), streamed.answer()):
        assert answer is not None
        fault_before_json(answer, Checks(1, 1, valid_json=True, no_refusal=True), json_expected=True)
        for text in texts_to_judge(answer, None, {}):
            assert text.encode().decode() == text


LINES = st.sampled_from(
    ["```", "```json", "~~~", "~~~JSON", "````", "  ```", "{}", "x", "", " ", "<think>", "</think>"]
)


@given(st.lists(LINES), st.sampled_from(["\n", "\r\n"]))
def test_json_text_is_a_part_of_the_text(lines: list[str], end: str) -> None:
    """Whatever the fences: nothing is made up, and what has no fence and no thought stays."""
    text = end.join(lines)
    assert json_text(text) in text
    if not any(mark in text for mark in ("```", "~~~", "<think>")):
        assert json_text(text) == text


@given(st.lists(LINES.filter(lambda line: line != "</think>")).map("\n".join), st.text("{}[]1,x \n"))
def test_a_block_of_json_is_found_behind_any_thought(thought: str, value: str) -> None:
    """Whatever fences are open in it."""
    assert json_text(f"<think>{thought}</think>\n```json\n{value}\n```") == f"\n{value}"


@given(CHOICES, st.integers(0, 3))
def test_a_bad_choice_spoils_the_answer_in_every_place(choices: list[AnswerChoice], at: int) -> None:
    """EMPTY comes before every other fault."""
    bad = [*choices[:at], AnswerChoice(0, None), *choices[at:]]
    assert fault_before_json(numbered(bad), Checks(), json_expected=True) is Fault.EMPTY
