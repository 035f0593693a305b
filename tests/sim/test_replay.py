"""Each request that was recorded against vLLM gets an answer of the same shape from the simulated engine."""

import asyncio
from typing import Any

import pytest

from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from tests.captures import CapturedResponse, load_request, load_response
from tests.sim.wire import chat, eventually, post, request_bytes, send

FAST = SimSettings(model="smollm2", prefill_tps=1e9, decode_tps=5_000, max_model_len=8192)
PLAIN = (
    "chat_nonstream",
    "chat_n2",
    "chat_content_parts",
    "chat_logprobs",
    "completion_nonstream",
    "json_schema",
    "messages_api",
    "responses_api",
    "tool_named",
    "tool_required",
    "get_models",
)
STREAMED = (
    "chat_stream_usage",
    "chat_stream_nousage",
    "chat_stream_continuous_usage",
    "completion_stream",
    "json_schema_stream",
    "tool_required_stream",
)
REFUSED = (
    "err_bad_json",
    "err_content_type",
    "err_empty_messages",
    "err_image_unsupported",
    "err_missing_messages",
    "err_unknown_model",
    "json_schema_bad",
)
# Recorded without --enable-prompt-tokens-details, which the simulated engine always has; or random by nature.
OPTIONAL = ("prompt_tokens_details", "logprobs", "incomplete_details")


def shape(value: Any) -> Any:
    """The keys in their order, all the way down, without values."""
    if isinstance(value, dict):
        return [(key, shape(item)) for key, item in value.items() if key not in OPTIONAL]
    return [shape(item) for item in value] if isinstance(value, list) else None


async def replay(name: str) -> CapturedResponse:
    """The simulated answer to a recorded request."""
    async with SimServer(FAST) as sim:
        return await send(sim.port, load_request("vllm", name).raw)


@pytest.mark.parametrize("name", PLAIN)
async def test_a_plain_answer_has_the_fields_of_the_recorded_one_in_the_same_order(name: str) -> None:
    """Keys, nesting, status and content type are the engine's; texts and counts are the simulation's."""
    answer, recorded = await replay(name), load_response("vllm", name)
    assert (answer.status, answer.headers["content-type"]) == (recorded.status, recorded.headers["content-type"])
    assert shape(answer.json()) == shape(recorded.json())


@pytest.mark.parametrize("name", STREAMED)
async def test_a_stream_has_the_kinds_of_events_of_the_recorded_one_in_the_same_order(name: str) -> None:
    """Runs of events with the same keys count once, since the number of tokens differs."""
    answer, recorded = await replay(name), load_response("vllm", name)
    assert (answer.status, answer.headers["content-type"]) == (recorded.status, recorded.headers["content-type"])
    assert answer.complete
    assert runs(answer.events()) == runs(recorded.events())


@pytest.mark.parametrize("name", STREAMED)
async def test_every_event_of_a_stream_is_a_chunk_of_its_own(name: str) -> None:
    """As in the recording: one event, its blank line, one HTTP chunk."""
    answer = await replay(name)
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in answer.chunks)
    assert all(chunk.count(b"\n\n") == 1 for chunk in answer.chunks)
    assert answer.chunks[-1] == b"data: [DONE]\n\n"


@pytest.mark.parametrize("name", REFUSED)
async def test_a_refusal_equals_the_recorded_one_byte_for_byte(name: str) -> None:
    """Refusals hold no random part."""
    answer, recorded = await replay(name), load_response("vllm", name)
    assert (answer.status, answer.body) == (recorded.status, recorded.body)


async def test_a_prompt_above_the_context_is_refused_as_recorded() -> None:
    """8,192 tokens is the limit of both engines here."""
    async with SimServer(FAST) as sim:
        answer = await post(sim.port, "/v1/chat/completions", chat("word " * 16_384, model="smollm2"))
    recorded = load_response("vllm", "err_too_long")
    assert (answer.status, answer.body) == (recorded.status, recorded.body)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_full_queue_refuses_as_recorded(streamed: bool) -> None:
    """A plain request gets a 503, a streamed one a 200 with an error event."""
    settings = SimSettings(model="smollm2", prefill_tps=1.0, max_num_seqs=1, max_queue=0)
    async with SimServer(settings) as sim:
        first = asyncio.ensure_future(post(sim.port, "/v1/chat/completions", chat(model="smollm2")))
        await eventually(lambda: sim.engine.running == 1)
        answer = await post(sim.port, "/v1/chat/completions", chat(model="smollm2", stream=streamed))
        first.cancel()
    recorded = load_response("vllm", f"vllm_queue_full_{'stream' if streamed else 'nonstream'}")
    assert (answer.status, answer.chunks, answer.body) == (recorded.status, recorded.chunks, recorded.body)


async def test_health_answers_with_an_empty_200_as_recorded() -> None:
    """And HEAD is not allowed."""
    answer, recorded = await replay("get_health"), load_response("vllm", "get_health")
    assert (answer.status, answer.body) == (recorded.status, recorded.body) == (200, b"")
    async with SimServer(FAST) as sim:
        head = await send(sim.port, request_bytes("/health", method="HEAD"))
    assert head.status == 405


def runs(events: list[Any]) -> list[Any]:
    """The shapes of events, neighbours of one shape once."""
    shapes = [shape(item) if isinstance(item, dict) else item for item in events]
    return [item for index, item in enumerate(shapes) if index == 0 or item != shapes[index - 1]]
