"""Chains that go on from a prompt that was read before."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from router_ext.model.request import Api
from router_ext.payload.prompt import read_prompt
from tests.fakes.transcripts import envelope

TEXTS = st.text(max_size=20) | st.sampled_from(["x" * 3000, "é" * 2500])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}),
    min_size=1,
    max_size=6,
)
TOOLS = st.sampled_from([{}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"cache_salt": "s"}])


def _body(fields: dict[str, Any], messages: list[Any]) -> bytes:
    return json.dumps({**fields, "messages": messages}).encode()


@given(MESSAGES, MESSAGES, TOOLS, TOOLS, st.sampled_from(["m", "n"]))
def test_a_start_changes_nothing_but_the_work(
    first: list[Any], more: list[Any], before: dict[str, Any], now: dict[str, Any], model: str
) -> None:
    """Whatever the tools, the settings and the model are; with others the start is of no use and harmless."""
    start = read_prompt(Api.CHAT, "m", envelope(_body(before, first))).start
    whole = envelope(_body(now, [*first, *more]))
    assert read_prompt(Api.CHAT, model, whole, start) == read_prompt(Api.CHAT, model, whole)
