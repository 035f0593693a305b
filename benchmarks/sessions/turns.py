"""Turns of a 400 KB conversation: one message to its session, against the whole of it each time, in alternation.

Both conversations are the same and grow by the same turns. Simulated engines answer with words that follow from the
whole prompt: equal answers show that the backend got the same context.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.load import quantile
from benchmarks.sessions.texts import Writer, chat_body, message
from benchmarks.sessions.wire import Answer, Wire
from router_ext.model.headers import SESSION_CREATE, SESSION_ID

CONTEXT_BYTES: Final = 400_000
MESSAGE_BYTES: Final = 300
ROUNDS: Final = 5
TURNS: Final = 40
TOKENS: Final = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """One turn in both ways."""

    hydrated: Answer
    full: Answer


@dataclass(slots=True)
class _Conversation:
    """What a client without sessions keeps: all messages so far, as JSON."""

    messages: list[bytes] = field(default_factory=list)

    def body(self) -> bytes:
        return chat_body(self.messages, TOKENS)

    def add(self, answer: Answer) -> None:
        self.messages.append(message("assistant", content_of(answer.body)))


async def measure(port: int, rounds: int = ROUNDS, turns: int = TURNS) -> list[list[Pair]]:
    """Turns of a new conversation in each round, over one connection each way."""
    async with Wire(port) as hydrated, Wire(port) as full:
        return [await _round(hydrated, full, Writer(seed), turns) for seed in range(rounds)]


async def _round(hydrated: Wire, full: Wire, writer: Writer, turns: int) -> list[Pair]:
    """The first request of each way, which sends all, is not counted."""
    conversation = _Conversation(writer.conversation(CONTEXT_BYTES))
    created = await hydrated.post(conversation.body(), (SESSION_CREATE, "true"))
    conversation.add(await full.post(conversation.body()))
    session = (SESSION_ID, created.headers[SESSION_ID])
    pairs = []
    for number in range(turns):
        new = message("user", writer.text(MESSAGE_BYTES))
        conversation.messages.append(new)
        bodies = chat_body([new], TOKENS), conversation.body()
        if number % 2:
            whole = await full.post(bodies[1])
            pair = Pair(await hydrated.post(bodies[0], session), whole)
        else:
            pair = Pair(await hydrated.post(bodies[0], session), await full.post(bodies[1]))
        conversation.add(pair.full)
        pairs.append(pair)
    return pairs


def content_of(body: bytes) -> str:
    """The text of a ``chat.completion``."""
    return str(json.loads(body)["choices"][0]["message"]["content"])


def figures(rounds: Sequence[Sequence[Pair]]) -> dict[str, Any]:
    """Uploads in bytes, latencies in milliseconds. ``other_answers`` counts turns that got two different answers."""
    pairs = [pair for turns in rounds for pair in turns]
    p50, full_p50 = _p50_ms([pair.hydrated for pair in pairs]), _p50_ms([pair.full for pair in pairs])
    return {
        "upload_bytes_max": max(pair.hydrated.sent for pair in pairs),
        "upload_bytes_full": max(pair.full.sent for pair in pairs),
        "hydrated_p50_ms": round(p50, 2),
        "full_p50_ms": round(full_p50, 2),
        "hydrated_p50_ratio": round(p50 / full_p50, 3),
        "hydrated_p50_ratios": [round(_ratio(turns), 3) for turns in rounds],
        "other_answers": sum(content_of(p.hydrated.body) != content_of(p.full.body) for p in pairs),
    }


def _ratio(pairs: Sequence[Pair]) -> float:
    return _p50_ms([pair.hydrated for pair in pairs]) / _p50_ms([pair.full for pair in pairs])


def _p50_ms(answers: Sequence[Answer]) -> float:
    return quantile(sorted(answer.seconds for answer in answers), 0.5) * 1000
