"""The requests of a run: a fixed schedule that does not wait for answers."""

import random
from dataclasses import dataclass
from typing import Any, Final

MODEL: Final = "sim"

TOKENS: Final = 20
"""Tokens of every answer: as many words, in the simulated engine."""

_PROMPT_WORDS: Final = 40
_WORDS: Final = ("river", "stone", "amber", "cloud", "market", "signal", "garden", "winter", "copper", "letter")


@dataclass(frozen=True, slots=True)
class Planned:
    """One chat request, due ``at_s`` seconds after the start."""

    at_s: float
    stream: bool
    prompt: str

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the request."""
        messages = [{"role": "user", "content": self.prompt}]
        return {"model": MODEL, "messages": messages, "max_tokens": TOKENS, "stream": self.stream}


def traffic(seconds: float, rate: float, seed: int) -> list[Planned]:
    """``seconds * rate`` requests at even distances, in order; every second one, in random order, is streamed."""
    rng = random.Random(seed)
    count = int(seconds * rate)
    kinds = [index % 2 == 0 for index in range(count)]
    rng.shuffle(kinds)
    return [Planned(index / rate, stream, _prompt(rng)) for index, stream in enumerate(kinds)]


def _prompt(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=_PROMPT_WORDS))
