"""Messages of a realistic kind and size: pieces of the Python reference, which is prose with some code."""

import json
import random
from dataclasses import dataclass, field
from pydoc_data.topics import topics
from typing import Final

SHORTEST: Final = 1000
LONGEST: Final = 2000
"""Characters of a message of a conversation."""

_POOL: Final = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "ignore").decode()
_ROLES: Final = ("user", "assistant")


@dataclass(slots=True)
class Writer:
    """Writes messages; ``seed`` fixes all of them."""

    seed: int = 0
    _rng: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def text(self, length: int) -> str:
        """ASCII text of exactly that length, far below the pool's 600,000 characters."""
        start = self._rng.randrange(len(_POOL) - length)
        return _POOL[start : start + length]

    def conversation(self, size: int) -> list[bytes]:
        """Messages from user and assistant in turn, the last one from the user: in all at least ``size`` bytes of JSON,
        and at most two messages more.
        """
        messages: list[bytes] = []
        total = 0
        while total < size or len(messages) % 2 == 0:
            content = self.text(self._rng.randint(SHORTEST, LONGEST))
            messages.append(message(_ROLES[len(messages) % 2], content))
            total += len(messages[-1])
        return messages


def message(role: str, content: str) -> bytes:
    """One message as JSON without spaces, as the openai package writes it."""
    return json.dumps({"role": role, "content": content}, separators=(",", ":")).encode()


def chat_body(messages: list[bytes], max_tokens: int, *, stream: bool = False) -> bytes:
    """A chat request with these messages."""
    rest = json.dumps({"max_tokens": max_tokens, "stream": stream}, separators=(",", ":")).encode()
    return b'{"model":"sim","messages":[' + b",".join(messages) + b"]," + rest[1:]
