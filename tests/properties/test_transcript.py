"""Any conversation, however it is written down and however its answers are cut."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from router_ext.payload.answer_message import StreamedMessage, plain_message
from router_ext.payload.envelope import Envelope
from router_ext.payload.transcript import hydrated_envelope
from router_ext.stream.sse import SseReader
from tests.fakes.chat_answers import chunk, completion
from tests.fakes.transcripts import elements, envelope, fresh, sent, texts
from tests.properties.test_envelope import OBJECTS, TEXTS, VALUES, written

LAST = {"role": "user", "content": "the last message, as no other one is"}
ROLES = st.sampled_from(["user", "assistant", "tool"])
TURN = st.builds(lambda fields, role: {**fields, "role": role}, st.dictionaries(TEXTS, VALUES, max_size=3), ROLES)
TURNS = st.lists(TURN, max_size=3)
INSTRUCTION = st.fixed_dictionaries({"role": st.sampled_from(["system", "developer"]), "content": st.just("A") | TEXTS})
INSTRUCTIONS = st.lists(INSTRUCTION, max_size=2)
STORED = st.builds(lambda leading, turns: [*leading, *turns], INSTRUCTIONS, TURNS)
BODIES = st.builds(
    lambda fields, leading, turns: {**fields, "messages": [*leading, *turns, LAST]}, OBJECTS, INSTRUCTIONS, TURNS
)


def _conversation(messages: list[Any]) -> list[Any]:
    """Without leading instructions."""
    roles = [message["role"] in ("system", "developer") for message in messages]
    return messages[roles.index(False) if False in roles else len(roles) :]


def _meaning(messages: list[Any]) -> list[Any]:
    """What counts of each message: fields that are not empty, of answers those that are stored."""
    stored = {"role", "name", "content", "tool_calls", "function_call", "refusal"}
    return [
        {
            name: value
            for name, value in message.items()
            if value not in (None, "", [], {}) and (message["role"] != "assistant" or name in stored)
        }
        for message in messages
    ]


@given(written(BODIES))
def test_each_message_parses_to_its_value(case: tuple[dict[str, object], bytes]) -> None:
    """The pieces are the elements of the array, and stand in the body as they are."""
    value, raw = case
    messages = elements(raw)
    assert [json.loads(message) for message in messages] == value["messages"]
    assert all(message in raw for message in messages)


@given(written(BODIES), STORED)
def test_a_hydrated_body_is_the_stored_conversation_with_the_turn_around_it(
    case: tuple[dict[str, Any], bytes], stored: list[Any]
) -> None:
    """In order; all other fields are unchanged. The turn is all that the client sent, less what is stored."""
    value, raw = case
    turn = fresh(elements(raw), texts(*stored))
    instructions, new = ([json.loads(text) for text in part] for part in (turn.instructions, turn.new))
    assert json.loads(sent(raw, texts(*stored))) == value | {"messages": [*instructions, *stored, *new]}
    asked = _conversation(value["messages"])
    leading = value["messages"][: -len(asked)]
    assert instructions == leading or (not instructions and _meaning(stored[: len(leading)]) == _meaning(leading))
    repeated = asked[: len(asked) - len(new)]
    assert new == asked[len(repeated) :]
    assert _meaning(repeated) in ([], _meaning(_conversation(stored)))


@given(written(BODIES), STORED)
def test_the_envelope_of_a_hydrated_body_is_that_of_its_bytes(
    case: tuple[dict[str, Any], bytes], stored: list[Any]
) -> None:
    """Fields and places are those that reading the whole body again would find."""
    _, raw = case
    before = envelope(raw)
    turn = fresh(elements(raw), texts(*stored))
    after = hydrated_envelope(before, texts(*stored), turn)
    assert isinstance(after, Envelope)
    again = envelope(after.raw)
    assert (after.raw, after.fields, after.spans) == (again.raw, again.fields, again.spans)


@given(STORED, INSTRUCTIONS, TURNS, OBJECTS, st.data())
def test_a_repeated_conversation_adds_what_comes_after_it(
    stored: list[Any], leading: list[Any], turns: list[Any], fields: dict[str, object], data: st.DataObject
) -> None:
    """However it is written this time, and whatever instructions stand in front."""
    new = [*turns, LAST]
    messages = [*leading, *_conversation(stored), *new]
    _, raw = data.draw(written(st.just({**fields, "messages": messages})))
    assert [json.loads(text) for text in fresh(elements(raw), texts(*stored)).new] == new


NAMES = st.text("abc_", min_size=1, max_size=8)
CALLS = st.lists(st.tuples(NAMES, TEXTS), max_size=3)
PLAIN_TEXTS = st.none() | TEXTS


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, which may end in the middle of a character of two UTF-16 units."""
    units = text.encode("utf-16-le")
    at = sorted(draw(st.lists(st.integers(0, len(units) // 2), max_size=4)))
    places = [0, *at, len(units) // 2]
    return [units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass") for start, end in pairwise(places)]


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A message, and deltas that stream it: the pieces of each text in order, texts and calls in any order."""
    message = {name: draw(PLAIN_TEXTS) for name in ("content", "refusal", "reasoning", "reasoning_content")}
    calls: list[dict[str, Any]] = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(draw(CALLS))
    ]
    lines: list[list[dict[str, Any]]] = [
        [{name: piece} for piece in draw(cut(text))] for name, text in message.items() if text is not None
    ]
    for at, call in enumerate(calls):
        pieces = [{"function": {"arguments": piece}} for piece in draw(cut(call["function"]["arguments"]))]
        begin = {**call, "function": {"name": call["function"]["name"]}}
        lines.append([{"tool_calls": [{"index": at, **piece}]} for piece in (begin, *pieces)])
    order = draw(st.permutations([number for number, line in enumerate(lines) for _ in line]))
    left = [iter(line) for line in lines]
    return {"role": "assistant", **message, "tool_calls": calls}, [next(left[number]) for number in order]


@given(answers(), st.data())
def test_a_streamed_answer_is_kept_as_the_plain_one(
    case: tuple[dict[str, Any], list[dict[str, Any]]], data: st.DataObject
) -> None:
    """However the texts are cut into events, and the events into pieces."""
    message, deltas = case
    events = [chunk(delta) for delta in ({"role": "assistant"}, *deltas)]
    stream = b"".join(b"data: " + event + b"\n\n" for event in (*events, chunk({}, "stop"), b"[DONE]"))
    ends = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    reader, streamed = SseReader(), StreamedMessage()
    for start, end in pairwise([0, *ends, len(stream)]):
        for event in reader.feed(stream[start:end]):
            streamed.feed(event)
    kept, plain = streamed.message(), plain_message(completion(message))
    assert kept is not None
    assert plain is not None
    assert json.loads(kept) == json.loads(plain)


@given(st.lists(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()) | VALUES.map(chunk)))
def test_no_event_raises(events: list[bytes]) -> None:
    """Any data gives a message or none."""
    streamed = StreamedMessage(200)
    for event in events:
        streamed.feed(event)
        plain_message(event)
    streamed.message()


ENTRY = st.dictionaries(st.sampled_from(["index", "id", "type", "function", "custom", "x"]), VALUES)
ODD = st.dictionaries(
    st.sampled_from(["role", "content", "tool_calls", "function_call", "refusal"]),
    st.lists(ENTRY, max_size=2) | VALUES,
    max_size=2,
)


@given(st.lists(ODD, max_size=3))
def test_whatever_a_delta_holds_the_message_is_json(deltas: list[dict[str, Any]]) -> None:
    """An object with a role and content at least, so that later turns can be sent."""
    streamed = StreamedMessage()
    for delta in deltas:
        streamed.feed(chunk(delta))
    streamed.feed(chunk({}, "stop"))
    message = streamed.message()
    assert message is not None
    assert {"role", "content"} <= json.loads(message).keys()
