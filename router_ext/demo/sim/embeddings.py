"""POST /v1/embeddings: small vectors of length 1 that depend on the text and the seed only."""

import base64
import math
import struct
from dataclasses import dataclass

import orjson

from router_ext.demo.sim.answers import mix
from router_ext.demo.sim.completions import read_texts
from router_ext.demo.sim.errors import ApiError, missing_field, wrong_type
from router_ext.demo.sim.exchange import Frame, Json, Usage
from router_ext.demo.sim.prompt import Prompt, read_prompt

MAX_DIMENSIONS = 4096


@dataclass(frozen=True, slots=True)
class EmbeddingExchange:
    """One embedding request; nothing is generated and nothing is streamed."""

    frame: Frame
    prompt: Prompt
    vectors: tuple[list[float], ...]
    as_base64: bool
    streamed: bool = False
    steps: int = 0
    generated: int = 0
    finish: str = "stop"

    def plain(self, usage: Usage) -> bytes:
        """A list of embeddings."""
        frame = self.frame
        return orjson.dumps(
            {
                "id": f"embd-{frame.token}",
                "object": "list",
                "created": frame.created,
                "model": frame.model,
                "data": [self._item(index, vector) for index, vector in enumerate(self.vectors)],
                "usage": {**usage.counts(), "prompt_tokens_details": None},
            }
        )

    def opening(self, usage: Usage) -> list[bytes]:
        """Nothing."""
        return []

    def step(self, index: int, usage: Usage) -> list[bytes]:
        """Nothing."""
        return []

    def closing(self, usage: Usage) -> list[bytes]:
        """Nothing."""
        return []

    def _item(self, index: int, vector: list[float]) -> Json:
        packed = struct.pack(f"<{len(vector)}f", *vector)
        value = base64.b64encode(packed).decode() if self.as_base64 else vector
        return {"index": index, "object": "embedding", "embedding": value}


def parse(body: Json, frame: Frame) -> EmbeddingExchange | ApiError:
    """The exchange of a request body, or the refusal."""
    if "input" not in body:
        return missing_field("input", len(body))
    texts = read_texts(body["input"])
    if not texts:
        return wrong_type("input", "string")
    size = body.get("dimensions") or frame.settings.embedding_size
    if not isinstance(size, int) or not 1 <= size <= MAX_DIMENSIONS:
        return wrong_type("dimensions", "integer")
    prompt = read_prompt(b"".join(texts), frame.model, frame.settings)
    if isinstance(prompt, ApiError):
        return prompt
    vectors = tuple(_vector(text, size, frame) for text in texts)
    return EmbeddingExchange(frame, prompt, vectors, body.get("encoding_format") == "base64")


def _vector(text: bytes, size: int, frame: Frame) -> list[float]:
    prompt = read_prompt(text, "", frame.settings)
    bits = 0 if isinstance(prompt, ApiError) else frame.bits(prompt)
    raw = [mix(bits, index) / 2**63 - 1 for index in range(size)]
    length = math.sqrt(sum(value * value for value in raw)) or 1.0
    return [round(value / length, 6) for value in raw]
