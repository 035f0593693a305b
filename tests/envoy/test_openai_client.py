"""The unmodified ``openai`` package through Envoy: answers equal those of the backend itself."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.envoy.stack import Stack, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
defaults: {fallback_chain: [a]}
"""

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
MESSAGES: list[Any] = [{"role": "user", "content": "What is the weather in Paris? Use the tool."}]


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One stack for the module."""
    with stack(CONFIG, {"a": ["--model", "m"]}) as started:
        yield started


def clients(running: Stack) -> tuple[OpenAI, OpenAI]:
    """A client through Envoy and one straight to the backend."""
    through = OpenAI(base_url=running.url + "/v1", api_key="k", max_retries=0)
    straight = OpenAI(base_url=f"http://127.0.0.1:{running.sim_ports['a']}/v1", api_key="k", max_retries=0)
    return through, straight


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 12},
        {"max_tokens": 12, "n": 2},
        {"tools": TOOLS, "tool_choice": "required"},
        {"max_tokens": 5, "seed": 36028797018963969, "temperature": 0.0},
    ],
    ids=["plain", "n=2", "tool call", "54-bit seed"],
)
def test_a_plain_answer_equals_the_backends_own(running: Stack, options: dict[str, Any]) -> None:
    """Neither the request nor the answer changes on the way."""
    through, straight = clients(running)
    answers = [
        client.chat.completions.create(model="m", messages=MESSAGES, **options) for client in (through, straight)
    ]
    assert _timeless(answers[0]) == _timeless(answers[1])
    assert answers[0].choices[0].message.content or answers[0].choices[0].message.tool_calls


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 12},
        {"max_tokens": 12, "n": 2},
        {"max_tokens": 12, "stream_options": {"include_usage": True}},
        {"tools": TOOLS, "tool_choice": "required"},
    ],
    ids=["plain", "n=2", "with usage", "tool call"],
)
def test_a_streamed_answer_equals_the_backends_own(running: Stack, options: dict[str, Any]) -> None:
    """Every event arrives, in order, unchanged."""
    through, straight = clients(running)
    streams = [
        list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True, **options))
        for client in (through, straight)
    ]
    assert [_timeless(event) for event in streams[0]] == [_timeless(event) for event in streams[1]]
    assert len(streams[0]) > 2


def test_the_other_apis_answer_as_the_backend_does(running: Stack) -> None:
    """Completions, embeddings and responses are routed like chats."""
    through, straight = clients(running)
    calls: list[Callable[[OpenAI], Any]] = [
        lambda client: client.completions.create(model="m", prompt="Once", max_tokens=6),
        lambda client: client.embeddings.create(model="m", input="Once"),
        lambda client: client.responses.create(model="m", input="Once", max_output_tokens=6),
    ]
    for call in calls:
        assert _timeless(call(through)) == _timeless(call(straight))


def test_the_answer_says_who_gave_it_and_by_which_rule(running: Stack) -> None:
    """The response headers name the backend and the rule."""
    through, _ = clients(running)
    answer = through.chat.completions.with_raw_response.create(model="m", messages=MESSAGES, max_tokens=2)
    assert answer.headers["x-kronaxis-backend"] == "a"
    assert answer.headers["x-kronaxis-rule"] == "default"


def test_an_error_of_the_backend_reaches_the_client(running: Stack) -> None:
    """A 4xx of the engine is the client's to see, with the engine's own message."""
    through, straight = clients(running)
    errors = []
    for client in (through, straight):
        with pytest.raises(BadRequestError) as caught:
            client.chat.completions.create(model="m", messages=[])
        errors.append(caught.value.body)
    assert errors[0] == errors[1]


def _timeless(answer: Any) -> dict[str, Any]:
    """The answer without what differs between two calls: cache figures depend on the call before."""
    fields: dict[str, Any] = answer.model_dump()
    usage = fields.get("usage") or {}
    for name in ("prompt_tokens_details", "input_tokens_details"):
        usage.pop(name, None)
    return fields
