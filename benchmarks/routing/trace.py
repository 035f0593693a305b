"""The requests to replay: a recorded trace, and one where every client shares a big system prompt."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from router_ext.model.prefix import Boundary, Prompt

TRACE: Final = Path(__file__).parent.parent / "data" / "mooncake_conversation_trace.jsonl.gz"

BLOCK: Final = 512
"""Tokens of one cache block."""

TOKEN_BYTES: Final = 4
"""Bytes of text a token, as the router sees sizes in bytes."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request: ``tokens`` of prompt in ``blocks`` (equal ids are equal prefixes up to there), ``output`` tokens."""

    arrival_s: float
    tokens: int
    output: int
    blocks: tuple[int, ...]
    prompt: Prompt


def turn(arrival_s: float, tokens: int, output: int, blocks: tuple[int, ...]) -> Turn:
    """A request with its prompt as the router would read it: one boundary at the end of each block."""
    ends = [min((i + 1) * BLOCK, tokens) * TOKEN_BYTES for i in range(len(blocks))]
    boundaries = tuple(Boundary(block.to_bytes(8), end) for block, end in zip(blocks, ends, strict=True))
    return Turn(arrival_s, tokens, output, blocks, Prompt(boundaries, tokens * TOKEN_BYTES))


def conversations() -> list[Turn]:
    """The recorded trace: 12,031 requests in 59 minutes."""
    with gzip.open(TRACE) as lines:
        records = [json.loads(line) for line in lines]
    return [
        turn(item["timestamp"] / 1000, item["input_length"], item["output_length"], tuple(item["hash_ids"]))
        for item in records
    ]


def hot_prefix(count: int, per_second: float, shared_blocks: int = 16, seed: int = 7) -> list[Turn]:
    """``count`` first turns with one system prompt (8,192 tokens) and up to 2,048 tokens of their own."""
    draw = Random(seed)
    shared = tuple(range(shared_blocks))
    turns: list[Turn] = []
    at = 0.0
    for i in range(count):
        at += draw.expovariate(per_second)
        own = draw.randint(1, 4)
        blocks = shared + tuple(shared_blocks + 4 * i + k for k in range(own))
        turns.append(turn(at, len(blocks) * BLOCK, draw.randint(20, 400), blocks))
    return turns
