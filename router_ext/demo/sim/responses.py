"""POST /v1/responses: one text message as output, nothing stored."""

from dataclasses import dataclass
from typing import Any

import orjson

from router_ext.demo.sim.answers import Answer
from router_ext.demo.sim.conversation import read_conversation
from router_ext.demo.sim.errors import ApiError, missing_field
from router_ext.demo.sim.exchange import Frame, Json, Usage, named_event, read_limit
from router_ext.demo.sim.prompt import Prompt

_FIXED_EVENTS = 4


@dataclass(frozen=True, slots=True)
class ResponsesExchange:
    """One request with one answer."""

    frame: Frame
    prompt: Prompt
    streamed: bool
    answer: Answer
    asked: int | None
    instructions: str | None

    @property
    def steps(self) -> int:
        """Tokens of the answer."""
        return len(self.answer.pieces)

    @property
    def generated(self) -> int:
        """Tokens of the answer."""
        return len(self.answer.pieces)

    @property
    def finish(self) -> str:
        """OpenAI's older reason: stop or length."""
        return self.answer.finish

    def plain(self, usage: Usage) -> bytes:
        """A ``response``."""
        return orjson.dumps(self._response(self._status(), [self._message()], _usage(usage)))

    def opening(self, usage: Usage) -> list[bytes]:
        """The start of the response, of its only item and of the item's only part."""
        started = self._response("in_progress", [], None)
        item = {**self._message(), "content": [], "status": "in_progress"}
        return [
            _typed("response.created", 0, {"response": started}),
            _typed("response.in_progress", 1, {"response": started}),
            _typed("response.output_item.added", 2, {"output_index": 0, "item": item}),
            _typed("response.content_part.added", 3, {**self._place(), "part": _part("")}),
        ]

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """One piece of text."""
        delta = {**self._place(), "delta": self.answer.pieces[index], "logprobs": []}
        return [_typed("response.output_text.delta", _FIXED_EVENTS + index, delta)]

    def closing(self, usage: Usage) -> list[bytes]:
        """The ends of part, item and response. There is no other end marker."""
        number = _FIXED_EVENTS + self.steps
        text = self.answer.text
        last = "response.completed" if self._status() == "completed" else "response.incomplete"
        response = self._response(self._status(), [self._message()], _usage(usage))
        return [
            _typed("response.output_text.done", number, {**self._place(), "text": text, "logprobs": []}),
            _typed("response.content_part.done", number + 1, {**self._place(), "part": _part(text)}),
            _typed("response.output_item.done", number + 2, {"output_index": 0, "item": self._message()}),
            _typed(last, number + 3, {"response": response}),
        ]

    def _status(self) -> str:
        return "incomplete" if self.answer.finish == "length" else "completed"

    def _place(self) -> Json:
        return {"item_id": f"msg_{self.frame.token}", "output_index": 0, "content_index": 0}

    def _message(self) -> Json:
        return {
            "id": f"msg_{self.frame.token}",
            "content": [_part(self.answer.text)],
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "phase": None,
        }

    def _response(self, status: str, output: list[Json], usage: Json | None) -> Json:
        head = {
            "id": f"resp_{self.frame.token}",
            "created_at": self.frame.created,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": self.instructions,
            "metadata": None,
            "model": self.frame.model,
            "object": "response",
            "output": output,
        }
        limits = {**_SETTINGS, "max_output_tokens": self.asked, **_UNSET}
        return {**head, **limits, "status": status, **_AFTER_STATUS, "usage": usage, **_TAIL}


_SETTINGS: Json = {
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "none",
    "tools": [],
    "top_p": 1.0,
    "background": False,
}
_UNSET: Json = {
    "max_tool_calls": None,
    "previous_response_id": None,
    "prompt": None,
    "reasoning": None,
    "service_tier": "auto",
}
_AFTER_STATUS: Json = {"text": None, "top_logprobs": None, "truncation": "disabled"}
_TAIL: Json = {
    "user": None,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "kv_transfer_params": None,
    "ec_transfer_params": None,
    "input_messages": None,
    "output_messages": None,
}


def parse(body: Json, frame: Frame) -> ResponsesExchange | ApiError:
    """The exchange of a request body, or the refusal."""
    if "input" not in body:
        return missing_field("input", len(body))
    prompt = read_conversation(_turns(body["input"], body.get("instructions")), body, frame, "input")
    if isinstance(prompt, ApiError):
        return prompt
    limit = read_limit(body, ("max_output_tokens",), prompt, frame.settings)
    if isinstance(limit, ApiError):
        return limit
    answer = frame.write(prompt, limit)
    return ResponsesExchange(
        frame, prompt, body.get("stream") is True, answer, limit.asked, body.get("instructions") or None
    )


def _turns(given: Any, instructions: Any) -> list[Any]:
    system = [{"role": "system", "content": instructions}] if instructions else []
    turns = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return [*system, *(_turn(item) for item in turns)]


def _turn(item: Any) -> Any:
    """Items without a role (calls, call outputs) count as the tool's turn."""
    if not isinstance(item, dict) or "role" in item:
        return item
    return {"role": "tool", "content": orjson.dumps(item).decode()}


def _part(text: str) -> Json:
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": None}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": 0,
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": usage.completion,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": usage.prompt + usage.completion,
    }


def _typed(name: str, number: int, payload: Json) -> bytes:
    return named_event(name, {"type": name, "sequence_number": number, **payload})
