"""What real answers cost, computed by hand: every shape in which engines report usage."""

from dataclasses import replace

import pytest

from router_ext.model.money import cost_micro_usd
from router_ext.stream.answer import UsageReader
from tests.captures import load_response
from tests.fakes.domain import backend

PRICED = replace(backend("a"), cost_input_1m=3.0, cost_cached_input_1m=0.3, cost_output_1m=15.0)

COSTS = {
    ("vllm", "chat_nonstream"): 37 * 3 + 8 * 15,
    ("vllm", "chat_n2"): 31 * 3 + 8 * 15,
    ("vllm", "chat_content_parts"): 32 * 3 + 4 * 15,
    ("vllm", "chat_logprobs"): 31 * 3 + 3 * 15,
    ("vllm", "chat_stream_usage"): 39 * 3 + 24 * 15,
    # Every event has the usage so far: the last one counts.
    ("vllm", "chat_stream_continuous_usage"): 39 * 3 + 8 * 15,
    ("vllm", "completion_nonstream"): 5 * 3 + 8 * 15,
    ("vllm", "completion_stream"): 5 * 3 + 8 * 15,
    ("vllm", "json_schema"): 40 * 3 + 60 * 15,
    ("vllm", "json_schema_stream"): 40 * 3 + 60 * 15,
    ("vllm", "tool_named"): 41 * 3 + 45 * 15,
    ("vllm", "tool_required"): 41 * 3 + 45 * 15,
    ("vllm", "tool_required_stream"): 41 * 3 + 45 * 15,
    ("vllm", "messages_api"): 32 * 3 + 8 * 15,
    ("vllm", "responses_api"): 32 * 3 + 8 * 15,
    ("llamacpp", "chat_nonstream"): 37 * 3 + 16 * 15,
    ("llamacpp", "completion_nonstream"): 5 * 3 + 8 * 15,
    # Cached tokens are part of the prompt's: 15 + 24 of 39, 16 + 24 of 40, 1 + 39 of 40, and so on.
    ("llamacpp", "chat_stream_usage"): 412,  # 45 + 7.2 + 360
    ("llamacpp", "json_schema"): 610,  # 48 + 7.2 + 555
    ("llamacpp", "json_schema_stream"): 570,  # 3 + 11.7 + 555
    ("llamacpp", "chat_content_parts"): 91,  # 8 * 3 + 24 * 0.3 + 4 * 15
    ("llamacpp", "chat_n2"): 72,  # 1 * 3 + 30 * 0.3 + 4 * 15
    ("llamacpp", "chat_stream_continuous_usage"): 134,  # 1 * 3 + 38 * 0.3 + 8 * 15
    ("llamacpp", "completion_stream"): 124,  # 1 * 3 + 4 * 0.3 + 8 * 15
    ("llamacpp", "responses_api"): 151,  # 8 * 3 + 24 * 0.3 + 8 * 15
    # The messages API counts them beside the prompt's: 1 that is new, 31 that were cached.
    ("llamacpp", "messages_api"): 132,  # 1 * 3 + 31 * 0.3 + 8 * 15
}


@pytest.mark.parametrize(("capture", "micro_usd"), COSTS.items(), ids=str)
@pytest.mark.parametrize("size", [7, 1_000_000])
def test_a_captured_answer_costs_what_its_usage_says(capture: tuple[str, str], micro_usd: int, size: int) -> None:
    """In pieces of any size."""
    body, reader = load_response(*capture).body, UsageReader()
    for start in range(0, len(body), size):
        reader.feed(body[start : start + size])
    assert reader.usage is not None
    assert cost_micro_usd(PRICED, reader.usage) == micro_usd


def test_a_stream_that_was_not_asked_reports_nothing() -> None:
    """It is estimated, or asked."""
    reader = UsageReader()
    reader.feed(load_response("vllm", "chat_stream_nousage").body)
    assert reader.usage is None
