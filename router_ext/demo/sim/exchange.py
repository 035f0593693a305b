"""What all inference APIs of the simulation share: a request's frame, its usage, and how its answer is written."""

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from router_ext.demo.sim.answers import Answer, Limit, mix, prose, quoted
from router_ext.demo.sim.errors import ApiError, bad_max_tokens, missing_field, wrong_type
from router_ext.demo.sim.prompt import Prompt
from router_ext.demo.sim.settings import SimSettings

Json = dict[str, Any]
FINGERPRINT = "vllm-0.32.0-51b0a7e1"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """What an answer needs beside the request: 16 hex digits for ids, whole seconds, the model name to show.

    ``said`` is the content of every answer, None where it is generated.
    """

    settings: SimSettings
    token: str
    created: int
    model: str
    said: str | None = None

    def write(self, prompt: Prompt, limit: Limit, index: int = 0, text: str | None = None) -> Answer:
        """Answer number ``index`` to a prompt: ``text`` when it is given, else prose."""
        if self.said is not None:
            return quoted(self.said, Limit(None, limit.room))
        if text is not None:
            return quoted(text, limit)
        return prose(self.bits(prompt, index), limit)

    def bits(self, prompt: Prompt, index: int = 0) -> int:
        """The number that decides the words of answer ``index``."""
        return mix(mix(prompt.digest, self.settings.seed), index)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request."""

    prompt: int
    cached: int
    completion: int

    def with_completion(self, tokens: int) -> "Usage":
        """The same prompt with another number of generated tokens."""
        return Usage(self.prompt, self.cached, tokens)

    def counts(self) -> Json:
        """OpenAI's three numbers in vLLM's order."""
        return {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
        }

    def plain(self) -> Json:
        """The usage object of an answer that is not streamed."""
        details = {"cached_tokens": self.cached, "created_cache_tokens": 0, "multimodal_tokens": None}
        return {**self.counts(), "prompt_tokens_details": details, "completion_tokens_details": None}

    def closing(self) -> Json:
        """The usage object of the last event of a stream."""
        return {**self.counts(), "prompt_tokens_details": {"cached_tokens": self.cached, "created_cache_tokens": 0}}

    def running(self) -> Json:
        """The usage object of an event in the middle of a stream."""
        return {**self.counts(), "completion_tokens_details": None}


class Exchange(Protocol):
    """One parsed request. A stream is: opening, then steps 0 to ``steps`` - 1 at the decode rate, then closing."""

    @property
    def prompt(self) -> Prompt:
        """What the engine has to prefill."""
        ...

    @property
    def streamed(self) -> bool:
        """Whether the client asked for events."""
        ...

    @property
    def steps(self) -> int:
        """Decode steps until the longest of the answers is complete; 0 when nothing is generated."""
        ...

    @property
    def generated(self) -> int:
        """Tokens of all answers together."""
        ...

    @property
    def finish(self) -> str:
        """Why the answer ended: stop or length."""
        ...

    def plain(self, usage: Usage) -> bytes:
        """The whole body."""
        ...

    def opening(self, usage: Usage) -> list[bytes]:
        """The events that come with the first token."""
        ...

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """The events of one decode step."""
        ...

    def closing(self, usage: Usage) -> list[bytes]:
        """The events after the last token."""
        ...


def event(payload: Json) -> bytes:
    """A nameless server-sent event."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def named_event(name: str, payload: Json) -> bytes:
    """A server-sent event with a name."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(payload) + b"\n\n"


def make_frame(
    settings: SimSettings, body: bytes, model: str, *, counter: int, now: float, said: str | None = None
) -> Frame:
    """The frame of request number ``counter``; with stable ids only the body matters."""
    if settings.stable_ids:
        return Frame(settings, hashlib.blake2b(body, digest_size=8).hexdigest(), 1_700_000_000, model, said)
    return Frame(settings, f"{settings.seed & 0xFFFFFFFF:08x}{counter & 0xFFFFFFFF:08x}", int(now), model, said)


def read_limit(body: Json, names: tuple[str, ...], prompt: Prompt, settings: SimSettings) -> Limit | ApiError:
    """The token limit: the first of ``names`` that is set counts."""
    room = settings.max_model_len - prompt.tokens
    exact = body.get("ignore_eos") is True
    for name in names:
        match body.get(name):
            case None:
                continue
            case bool() | str() | float() | list() | dict():
                return wrong_type(name, "integer")
            case asked if asked < 1:
                return bad_max_tokens(asked)
            case asked:
                return Limit(asked, room, exact)
    return Limit(None, room, exact)


def stream_option(body: Json, name: str) -> bool:
    """Whether a member of ``stream_options`` is true."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get(name) is True


def read_required(body: Json, name: str, kind: type, expected: str) -> ApiError | None:
    """The refusal when a field is absent or of another type, else None."""
    if name not in body:
        return missing_field(name, len(body))
    return None if isinstance(body[name], kind) else wrong_type(name, expected)
