"""POST /v1/messages, the Anthropic API as vLLM serves it."""

from dataclasses import dataclass

import orjson

from router_ext.demo.sim.answers import Answer
from router_ext.demo.sim.conversation import read_conversation
from router_ext.demo.sim.errors import NO_MESSAGES, ApiError
from router_ext.demo.sim.exchange import DONE, Frame, Json, Usage, named_event, read_limit, read_required
from router_ext.demo.sim.prompt import Prompt


@dataclass(frozen=True, slots=True)
class MessagesExchange:
    """One request with one answer of one text block."""

    frame: Frame
    prompt: Prompt
    streamed: bool
    answer: Answer

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
        """OpenAI's reason."""
        return self.answer.finish

    def plain(self, usage: Usage) -> bytes:
        """A ``message``."""
        content = [{"type": "text", "text": self.answer.text}]
        tail = {"model": self.frame.model, "stop_reason": self._stop_reason(), "usage": _usage(usage)}
        return orjson.dumps({**self._head(content), **tail})

    def opening(self, usage: Usage) -> list[bytes]:
        """The start of the message and of its only block."""
        message = {**self._head([]), "model": self.frame.model, "usage": _usage(usage.with_completion(0))}
        return [
            _typed("message_start", {"message": message}),
            _typed("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ]

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """One piece of text."""
        delta = {"type": "text_delta", "text": self.answer.pieces[index]}
        return [_typed("content_block_delta", {"index": 0, "delta": delta})]

    def closing(self, usage: Usage) -> list[bytes]:
        """The end of the block and of the message, and the marker that vLLM adds."""
        delta = {"delta": {"stop_reason": self._stop_reason()}, "usage": _usage(usage)}
        return [
            _typed("content_block_stop", {"index": 0}),
            _typed("message_delta", delta),
            _typed("message_stop", {}),
            DONE,
        ]

    def _head(self, content: list[Json]) -> Json:
        return {"id": f"chatcmpl-{self.frame.token}", "type": "message", "role": "assistant", "content": content}

    def _stop_reason(self) -> str:
        return "max_tokens" if self.answer.finish == "length" else "end_turn"


def parse(body: Json, frame: Frame) -> MessagesExchange | ApiError:
    """The exchange of a request body, or the refusal."""
    for name, kind, expected in (("messages", list, "list"), ("max_tokens", int, "integer")):
        if error := read_required(body, name, kind, expected):
            return error
    if not body["messages"]:
        return NO_MESSAGES
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    prompt = read_conversation([*system, *body["messages"]], body, frame, "messages")
    if isinstance(prompt, ApiError):
        return prompt
    limit = read_limit(body, ("max_tokens",), prompt, frame.settings)
    if isinstance(limit, ApiError):
        return limit
    return MessagesExchange(frame, prompt, body.get("stream") is True, frame.write(prompt, limit))


def _usage(usage: Usage) -> Json:
    return {"input_tokens": usage.prompt, "output_tokens": usage.completion}


def _typed(name: str, payload: Json) -> bytes:
    return named_event(name, {"type": name, **payload})
