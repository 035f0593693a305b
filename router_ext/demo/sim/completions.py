"""POST /v1/completions."""

from dataclasses import dataclass
from typing import Any

import orjson

from router_ext.demo.sim.answers import Answer
from router_ext.demo.sim.errors import ApiError, missing_field, wrong_type
from router_ext.demo.sim.exchange import DONE, FINGERPRINT, Frame, Json, Usage, event, read_limit, stream_option
from router_ext.demo.sim.prompt import BYTES_PER_TOKEN, Prompt, read_prompt


@dataclass(frozen=True, slots=True)
class CompletionExchange:
    """One completion request. A list of prompts is one piece of work for the engine, with ``n`` answers for each."""

    frame: Frame
    prompt: Prompt
    streamed: bool
    include_usage: bool
    answers: tuple[Answer, ...]

    @property
    def steps(self) -> int:
        """Decode steps of the longest answer."""
        return max(len(answer.pieces) for answer in self.answers)

    @property
    def generated(self) -> int:
        """Tokens of all answers."""
        return sum(len(answer.pieces) for answer in self.answers)

    @property
    def finish(self) -> str:
        """The reason of the first answer."""
        return self.answers[0].finish

    def plain(self, usage: Usage) -> bytes:
        """A ``text_completion``."""
        return orjson.dumps(
            {
                **self._head(),
                "choices": [_choice(index, answer) for index, answer in enumerate(self.answers)],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": usage.plain(),
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": None,
            }
        )

    def opening(self, usage: Usage) -> list[bytes]:
        """Nothing: a text completion has no role."""
        return []

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """Token ``index`` of each answer that is still going."""
        return [
            event({**self._head(), "choices": [_token(choice, answer, index)]})
            for choice, answer in enumerate(self.answers)
            if index < len(answer.pieces)
        ]

    def closing(self, usage: Usage) -> list[bytes]:
        """The usage event when it was asked for, and the end marker."""
        if not self.include_usage:
            return [DONE]
        tail = {"choices": [], "usage": usage.closing(), "system_fingerprint": FINGERPRINT}
        return [event(self._head() | tail), DONE]

    def _head(self) -> Json:
        frame = self.frame
        return {
            "id": f"cmpl-{frame.token}",
            "object": "text_completion",
            "created": frame.created,
            "model": frame.model,
        }


def parse(body: Json, frame: Frame) -> CompletionExchange | ApiError:
    """The exchange of a request body, or the refusal that vLLM gives it."""
    if "prompt" not in body:
        return missing_field("prompt", len(body))
    texts = read_texts(body["prompt"])
    if not texts:
        return wrong_type("prompt", "string")
    prompt = read_prompt(b"".join(texts), f"{frame.model}/{body.get('cache_salt', '')}", frame.settings)
    if isinstance(prompt, ApiError):
        return prompt
    limit = read_limit(body, ("max_tokens",), prompt, frame.settings)
    if isinstance(limit, ApiError):
        return limit
    n = body.get("n")
    count = len(texts) * (min(n, 128) if isinstance(n, int) and n > 0 else 1)
    answers = tuple(frame.write(prompt, limit, index) for index in range(count))
    include_usage = stream_option(body, "include_usage")
    return CompletionExchange(frame, prompt, body.get("stream") is True, include_usage, answers)


def read_texts(prompt: Any) -> list[bytes]:
    """The prompts in a text, a list of texts, a list of token numbers or a list of such lists; else nothing."""
    match prompt:
        case str():
            return [prompt.encode()]
        case [int(), *_]:
            return [_token_bytes(prompt)]
        case [str(), *_]:
            return [text.encode() for text in prompt if isinstance(text, str)]
        case [list(), *_]:
            return [_token_bytes(numbers) for numbers in prompt if isinstance(numbers, list)]
        case _:
            return []


def _token_bytes(numbers: list[Any]) -> bytes:
    return b"".join((number & 0xFFFFFFFF).to_bytes(BYTES_PER_TOKEN) for number in numbers if isinstance(number, int))


def _choice(index: int, answer: Answer) -> Json:
    return {
        "index": index,
        "text": answer.text,
        "logprobs": None,
        "finish_reason": answer.finish,
        "stop_reason": None,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "routed_experts": None,
    }


def _token(choice: int, answer: Answer, index: int) -> Json:
    return {
        "index": choice,
        "text": answer.pieces[index],
        "logprobs": None,
        "finish_reason": answer.finish if index == len(answer.pieces) - 1 else None,
        "stop_reason": None,
        "prompt_token_ids": None,
        "token_ids": None,
    }
