"""Token counts of answers that came without any, estimated from their bytes.

What a model's exact answers had in bytes a token is learned; the ratios that are assumed until then were measured on
answers of vLLM and llama.cpp.
"""

import math
from typing import Final

from router_ext.model.outcome import Carried, Usage
from router_ext.model.request import Api, InferenceRequest
from router_ext.payload.tokens import BYTES_PER_TOKEN

STREAM_BYTES_PER_TOKEN: Final = 225.0
"""Bytes of an event stream for each token: an event of its own, most of it frame."""

ANSWER_BYTES_PER_TOKEN: Final = 6.0
"""Bytes of a plain answer for each token: about 4.5 of text, and 650 of frame over 400 tokens."""

ASSUMED_TOKENS: Final = 20
"""How many tokens the assumed ratio weighs: a first answer of a single token, mostly frame, does not outweigh it."""

KEPT: Final = 0.9
"""What each exact answer leaves of those before it: the last ten or so make the ratio."""


class _Ratio:
    """Bytes per token of each model: moving sums of both, so that an answer weighs as much as it is long. Models are
    those that the configuration names.
    """

    def __init__(self, assumed: float) -> None:
        self._assumed = (assumed * ASSUMED_TOKENS, float(ASSUMED_TOKENS))
        self._sums: dict[str, tuple[float, float]] = {}

    def observe(self, model: str, size_bytes: int, tokens: int) -> None:
        """Learns that ``size_bytes`` were ``tokens``. Nothing is learned where either is below 1."""
        if size_bytes >= 1 and tokens >= 1:
            known_bytes, known_tokens = self._sums.get(model, self._assumed)
            self._sums[model] = (KEPT * known_bytes + size_bytes, KEPT * known_tokens + tokens)

    def estimate(self, model: str, size_bytes: int) -> int:
        """The tokens of ``size_bytes`` (≥ 0), rounded up."""
        known_bytes, known_tokens = self._sums.get(model, self._assumed)
        return math.ceil(size_bytes * known_tokens / known_bytes)


class Estimates:
    """What is known of the models, by the names that backends know them by."""

    def __init__(self) -> None:
        self._prompts = _Ratio(BYTES_PER_TOKEN)
        self._streams = _Ratio(STREAM_BYTES_PER_TOKEN)
        self._answers = _Ratio(ANSWER_BYTES_PER_TOKEN)

    def learn(self, model: str, request: InferenceRequest, carried: Carried, usage: Usage) -> None:
        """A whole answer of ``model`` came with exact counts."""
        self._prompts.observe(model, _prompt_bytes(request, carried), usage.prompt_tokens)
        self._ratio(carried).observe(model, carried.answer_bytes, usage.completion_tokens)

    def estimate(self, model: str, request: InferenceRequest, carried: Carried) -> Usage:
        """The tokens of an answer: at least 1 where there are bytes. Embeddings have those of the prompt only."""
        prompt = self._prompts.estimate(model, _prompt_bytes(request, carried))
        if request.path == Api.EMBEDDINGS:
            return Usage(prompt)
        return Usage(prompt, self._ratio(carried).estimate(model, carried.answer_bytes))

    def _ratio(self, carried: Carried) -> _Ratio:
        return self._streams if carried.streamed else self._answers


def _prompt_bytes(request: InferenceRequest, carried: Carried) -> int:
    """As the backend reads them; those on the wire where nobody saw the body."""
    return request.prompt_bytes or carried.request_bytes
