"""Prompt chains of the APIs that speak in turns: what two requests share, and what keeps them apart."""

import orjson
import pytest

from router_ext.model.prefix import Prompt
from router_ext.model.request import Api
from router_ext.payload.prompt import MAX_TURNS, PromptChain
from router_ext.payload.prompt_chain import BLOCK, MAX_BOUNDARIES
from tests.fakes.prompts import LONG, chat, message, read, shared, sizes

HELLO = message("Hello")
REPLY = message("Hi there", "assistant")


def test_there_is_a_boundary_after_every_turn() -> None:
    """Sizes count bytes of text from the prompt's start."""
    chain = chat(HELLO, REPLY, message("How are you?"))
    assert sizes(chain.prompt) == [5, 13, 25]
    assert chain.prompt.size == 25


def test_the_next_turn_of_a_conversation_holds_the_turns_before() -> None:
    """The last message of turn 1 is a boundary of turn 2, also when the answer is not known."""
    first, second = chat(HELLO), chat(HELLO, REPLY, message("How are you?"))
    assert shared(first.extended(), second.prompt) == 5


def test_a_known_answer_extends_the_chain() -> None:
    """The next turn, which sends the answer back, shares it too."""
    first, second = chat(HELLO), chat(HELLO, REPLY, message("How are you?"))
    assert sizes(first.extended([REPLY])) == [5, 13]
    assert shared(first.extended([REPLY]), second.prompt) == 13


def test_an_answer_with_tool_calls_extends_the_chain() -> None:
    """As engines answer, with nulls and indexes, and as clients send it back, in another key order."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answered = {"index": 0, **call}
    sent_back = {"function": {"arguments": "{}", "name": "f"}, "type": "function", "id": "c1"}
    answer = {"role": "assistant", "content": None, "tool_calls": [answered], "refusal": None, "reasoning": None}
    second = chat(HELLO, {"role": "assistant", "content": "", "tool_calls": [sent_back]}, message("42", "tool"))
    assert shared(chat(HELLO).extended([answer]), second.prompt) == sizes(second.prompt)[1]


def test_an_answer_that_the_client_changes_shares_only_what_came_before() -> None:
    """For example one whose reasoning is not sent back."""
    thought = {**REPLY, "reasoning_content": "hm"}
    assert shared(chat(HELLO).extended([thought]), chat(HELLO, REPLY, HELLO).prompt) == 5
    assert shared(chat(HELLO).extended([thought]), chat(HELLO, thought, HELLO).prompt) == 15


def test_a_single_short_message_has_nothing_to_look_up() -> None:
    """It still leaves a boundary for the next turn. From one block on it is looked up like any other."""
    short, long = chat(message("x" * (BLOCK - 1))), chat(message("x" * BLOCK))
    assert short.prompt == Prompt((), BLOCK - 1)
    assert sizes(short.extended()) == [BLOCK - 1]
    assert sizes(long.prompt) == [BLOCK]


def test_a_short_message_after_a_system_prompt_is_looked_up() -> None:
    """Two messages are a conversation that may be repeated as a whole."""
    assert sizes(chat(message("Be brief.", "system"), HELLO).prompt) == [14]


@pytest.mark.parametrize(("length", "expected"), [(BLOCK - 1, []), (BLOCK, [BLOCK])])
def test_a_system_prompt_alone_is_shared_from_one_block_on(length: int, expected: list[int]) -> None:
    """A shorter one is no reason to prefer a backend."""
    chain = chat(message("s" * length, "system"), HELLO)
    assert sizes(chain.prompt) == [*expected, length + 5]


def test_a_long_text_has_a_boundary_after_every_block() -> None:
    """Counted from the start of its own message."""
    assert len(LONG) == 4400
    assert sizes(chat(HELLO, message(LONG)).prompt) == [5, 2053, 4101, 4405]


def test_a_shared_document_before_another_tail_is_shared_by_blocks() -> None:
    """Whatever follows inside the same message, and however long it is."""
    left, right = chat(message(LONG + "What?")), chat(message(LONG + "Why?" * 1000))
    assert shared(left.prompt, right.prompt) == 4096


def test_blocks_are_cut_in_bytes_of_utf_8() -> None:
    """Also inside a character."""
    text = "x" + "é" * BLOCK
    chain = chat(message(text))
    assert sizes(chain.prompt) == [2048, 4096, 4097]
    assert shared(chain.prompt, chat(message(text[:-1] + "è")).prompt) == 4096


def test_a_text_that_ends_with_a_block_is_not_one_that_goes_on() -> None:
    """The message that ends there is another prefix than the same bytes with more to come."""
    ended, going_on = chat(message("x" * BLOCK), HELLO), chat(message("x" * BLOCK + "y"), HELLO)
    assert sizes(ended.prompt) == [2048, 2053]
    assert shared(ended.prompt, going_on.prompt) == 2048
    assert ended.key != going_on.key


def test_equal_text_in_another_role_is_another_prompt() -> None:
    """Templates render the role."""
    assert shared(chat(message(LONG)).prompt, chat(message(LONG, "assistant")).prompt) == 0


@pytest.mark.parametrize("field", ["name", "tool_call_id", "reasoning_content", "refusal"])
@pytest.mark.parametrize("empty", [None, ""])
def test_a_null_or_empty_field_is_a_missing_field(field: str, empty: str | None) -> None:
    """A set one makes another prompt."""
    plain = message("x")
    assert chat({**plain, field: empty}).key == chat(plain).key
    assert chat({**plain, field: "y"}).key != chat(plain).key


def test_reasoning_has_one_key_under_all_its_names() -> None:
    """Engines answer with one name and read another."""
    names = ("reasoning_content", "reasoning", "thinking")
    assert len({chat(message("x", **{name: "hm"})).key for name in names}) == 1


def test_fields_that_templates_do_not_read_make_no_difference() -> None:
    """Marks for a provider's cache, which clients move from turn to turn, among them."""
    assert chat(message("x", annotations=[], cache_control={"type": "ephemeral"})).key == chat(message("x")).key


def test_what_follows_the_beginning_of_the_prompt_does_not_change_its_keys() -> None:
    """Sampling parameters and the like."""
    assert chat(HELLO, max_tokens=5, temperature=0.5, stream=True).key == chat(HELLO).key


TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"b": {}, "a": {}}}},
    {"type": "function", "function": {"name": "g"}},
]


@pytest.mark.parametrize(
    "fields",
    [
        {"cache_salt": "s"},
        {"tools": TOOLS},
        {"functions": TOOLS},
        {"documents": [{"text": "d"}]},
        {"chat_template": "t"},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"reasoning_effort": "low"},
    ],
)
def test_what_the_prompt_begins_with_changes_every_key(fields: dict[str, object]) -> None:
    """Null is the same as missing."""
    turns = {"messages": [HELLO, HELLO]}
    plain = read(Api.CHAT, orjson.dumps(turns))
    assert shared(plain.prompt, read(Api.CHAT, orjson.dumps(turns | fields)).prompt) == 0
    assert read(Api.CHAT, orjson.dumps(turns | dict.fromkeys(fields))) == plain


def test_the_model_changes_every_key() -> None:
    """The caller's word for it, so that an adapter counts as a model of its own."""
    assert shared(chat(HELLO, HELLO, model="m").prompt, chat(HELLO, HELLO, model="m-lora").prompt) == 0


def test_tools_in_another_order_are_another_prompt() -> None:
    """Engines render them in the order that the client sent."""
    left, right = chat(HELLO, HELLO, tools=TOOLS), chat(HELLO, HELLO, tools=TOOLS[::-1])
    assert shared(left.prompt, right.prompt) == 0


def test_long_tools_are_a_prefix_of_their_own() -> None:
    """From one block on, also of a single short message."""
    tools = [{"type": "function", "function": {"name": "f", "description": "d" * BLOCK}}]
    size = len(orjson.dumps({"tools": tools}))
    assert sizes(chat(HELLO, tools=tools).prompt) == [size, size + 5]


def test_the_system_field_of_the_messages_api_comes_first() -> None:
    """A text or a list of parts, like a system message of the chat API."""
    expected = chat(message(LONG, "system"), HELLO)
    for system in (LONG, [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]):
        chain = read(Api.MESSAGES, orjson.dumps({"system": system, "messages": [HELLO]}))
        assert sizes(chain.prompt) == [2048, 4096, 4400, 4405]
        assert chain.prompt == expected.prompt


def test_the_instructions_of_the_responses_api_come_first() -> None:
    """With an input of one text, which is a user's message, or of items."""
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    keys = set()
    for turns in ("Hello", items):
        chain = read(Api.RESPONSES, orjson.dumps({"instructions": LONG, "input": turns}))
        assert sizes(chain.prompt) == [2048, 4096, 4400, 4405]
        keys.add(chain.key)
    assert len(keys) == 1


def test_items_of_the_responses_api_that_are_no_messages_count_as_turns() -> None:
    """Output items that come back with the next input are shared, whatever their status was."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "42"}
    second = read(Api.RESPONSES, orjson.dumps({"input": [HELLO, call, output]}))
    first = read(Api.RESPONSES, b'{"input":"Hello"}').extended([{**call, "status": "completed"}])
    assert shared(first, second.prompt) == sizes(second.prompt)[1]


def test_a_continued_response_is_another_prompt() -> None:
    """The turns before it are not in the body."""
    alone = read(Api.RESPONSES, b'{"input":"Hello"}')
    assert read(Api.RESPONSES, b'{"input":"Hello","previous_response_id":"r"}').key != alone.key


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize("field", ["{}", "null", "7", "true", "[]"])
def test_a_body_without_a_prompt_has_the_empty_chain(api: Api, field: str) -> None:
    """Whatever stands in its place."""
    raw = f'{{"messages":{field},"input":{field},"prompt":{field},"system":"x","instructions":"x"}}'
    assert read(api, raw.encode()) == PromptChain()


def test_embeddings_have_no_prefix() -> None:
    """Their engines cache nothing."""
    assert read(Api.EMBEDDINGS, orjson.dumps({"input": LONG})) == PromptChain()


def test_a_chain_of_many_boundaries_keeps_its_ends() -> None:
    """The beginning that others share, and the end that the next turn repeats; at the limit it keeps all."""
    full = chat(*[message("x")] * MAX_BOUNDARIES)
    assert sizes(full.prompt) == list(range(1, MAX_BOUNDARIES + 1))
    over = chat(*[message("x")] * (MAX_BOUNDARIES + 1))
    assert sizes(over.prompt) == [n for n in range(1, MAX_BOUNDARIES + 2) if n != MAX_BOUNDARIES // 2 + 1]
    assert len(full.extended([REPLY]).boundaries) == MAX_BOUNDARIES


def test_turns_beyond_the_limit_end_the_chain() -> None:
    """What follows is not shared, and the body's length stands for the prompt's."""
    raw = orjson.dumps({"messages": [message("x")] * (MAX_TURNS + 1)})
    chain = read(Api.CHAT, raw)
    assert sizes(chain.prompt)[-1] == MAX_TURNS
    assert chain.prompt.size == len(raw)
    assert chain.extended([REPLY]) == chain.prompt
