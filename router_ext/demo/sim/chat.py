"""POST /v1/chat/completions."""

from dataclasses import dataclass
from typing import Any

import orjson

from router_ext.demo.sim.answers import Answer, Limit
from router_ext.demo.sim.conversation import read_conversation
from router_ext.demo.sim.errors import NO_MESSAGES, ApiError, bad_grammar
from router_ext.demo.sim.exchange import (
    DONE,
    FINGERPRINT,
    Frame,
    Json,
    Usage,
    event,
    read_limit,
    read_required,
    stream_option,
)
from router_ext.demo.sim.prompt import Prompt
from router_ext.demo.sim.schema_values import SchemaError, example
from router_ext.demo.sim.tool_calls import ToolAnswer, write_tool_call

LIMIT_NAMES = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class ChatExchange:
    """One chat request and its ``n`` answers."""

    frame: Frame
    prompt: Prompt
    streamed: bool
    include_usage: bool
    continuous_usage: bool
    answers: tuple[Answer | ToolAnswer, ...]

    @property
    def steps(self) -> int:
        """Decode steps of the longest answer."""
        return max(_steps(answer) for answer in self.answers)

    @property
    def generated(self) -> int:
        """Tokens of all answers."""
        return sum(len(answer.pieces) for answer in self.answers)

    @property
    def finish(self) -> str:
        """The reason of the first answer; a tool call counts as stop."""
        return "length" if self.answers[0].finish == "length" else "stop"

    def plain(self, usage: Usage) -> bytes:
        """A ``chat.completion``."""
        return orjson.dumps(
            {
                **self._head("chat.completion"),
                "choices": [self._choice(index, answer) for index, answer in enumerate(self.answers)],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": usage.plain(),
                "prompt_logprobs": None,
                "prompt_token_ids": None,
                "prompt_text": None,
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": None,
            }
        )

    def opening(self, usage: Usage) -> list[bytes]:
        """The role-only event of each answer."""
        delta = {"role": "assistant", "content": ""}
        tail = {"prompt_token_ids": None, "prompt_text": None}
        return [
            self._chunk({"index": index, "delta": delta, "logprobs": None, "finish_reason": None}, usage, 0, tail)
            for index in range(len(self.answers))
        ]

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """Token ``index`` of each answer that is still going."""
        return [
            self._token(choice, answer, index, usage)
            for choice, answer in enumerate(self.answers)
            if index < _steps(answer)
        ]

    def closing(self, usage: Usage) -> list[bytes]:
        """The usage event when it was asked for, and the end marker."""
        if not self.include_usage:
            return [DONE]
        counts = usage.counts() if self.continuous_usage else usage.closing()
        tail = {"choices": [], "usage": counts, "system_fingerprint": FINGERPRINT}
        return [event(self._head("chat.completion.chunk") | tail), DONE]

    def _head(self, kind: str) -> Json:
        frame = self.frame
        return {"id": f"chatcmpl-{frame.token}", "object": kind, "created": frame.created, "model": frame.model}

    def _choice(self, index: int, answer: Answer | ToolAnswer) -> Json:
        return {
            "index": index,
            "message": _message(answer),
            "logprobs": None,
            "finish_reason": answer.finish,
            "stop_reason": None,
            "token_ids": None,
            "routed_experts": None,
        }

    def _token(self, choice: int, answer: Answer | ToolAnswer, index: int, usage: Usage) -> bytes:
        delta = answer.delta(index) if isinstance(answer, ToolAnswer) else {"content": answer.pieces[index]}
        payload: Json = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
        tail: Json = {}
        if index == _steps(answer) - 1:
            payload |= {"finish_reason": answer.finish, "stop_reason": None}
            tail = {} if self.include_usage else {"system_fingerprint": FINGERPRINT}
        payload["token_ids"] = None
        return self._chunk(payload, usage, min(index + 1, len(answer.pieces)), tail)

    def _chunk(self, choice: Json, usage: Usage, tokens: int, tail: Json) -> bytes:
        counts = {"usage": usage.with_completion(tokens).running()} if self.continuous_usage else {}
        return event({**self._head("chat.completion.chunk"), "choices": [choice], **counts, **tail})


def parse(body: Json, frame: Frame) -> ChatExchange | ApiError:
    """The exchange of a request body, or the refusal that vLLM gives it."""
    if error := read_required(body, "messages", list, "list"):
        return error
    if not body["messages"]:
        return NO_MESSAGES
    prompt = read_conversation(body["messages"], body, frame, "messages")
    return prompt if isinstance(prompt, ApiError) else _answered(body, frame, prompt)


def _answered(body: Json, frame: Frame, prompt: Prompt) -> ChatExchange | ApiError:
    limit = read_limit(body, LIMIT_NAMES, prompt, frame.settings)
    if isinstance(limit, ApiError):
        return limit
    try:
        answers = tuple(_write(body, frame, prompt, limit, index) for index in range(_choices(body)))
    except SchemaError as error:
        return bad_grammar(str(error))
    include_usage = stream_option(body, "include_usage")
    continuous = include_usage and stream_option(body, "continuous_usage_stats")
    return ChatExchange(frame, prompt, body.get("stream") is True, include_usage, continuous, answers)


def _write(body: Json, frame: Frame, prompt: Prompt, limit: Limit, index: int) -> Answer | ToolAnswer:
    bits = frame.bits(prompt, index)
    if frame.said is None and (call := write_tool_call(body, f"{frame.token[:-1]}{index:x}", bits)):
        return call
    return frame.write(prompt, limit, index, _structured(body.get("response_format"), bits))


def _structured(wanted: Any, bits: int) -> str | None:
    match wanted:
        case {"type": "json_schema", "json_schema": {"schema": dict() as schema}}:
            return orjson.dumps(example(schema, bits)).decode()
        case {"type": "json_object"}:
            schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
            return orjson.dumps(example(schema, bits)).decode()
        case _:
            return None


def _choices(body: Json) -> int:
    n = body.get("n")
    return min(n, 128) if isinstance(n, int) and n > 0 else 1


def _steps(answer: Answer | ToolAnswer) -> int:
    """A tool call ends with an event of its own, text with its last token."""
    return len(answer.pieces) + isinstance(answer, ToolAnswer)


def _message(answer: Answer | ToolAnswer) -> Json:
    calls = {"tool_calls": [answer.call()]} if isinstance(answer, ToolAnswer) else {}
    return {
        "role": "assistant",
        "content": "" if isinstance(answer, ToolAnswer) else answer.text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        **calls,
        "reasoning": None,
    }
