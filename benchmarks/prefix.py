"""What the prefix chain and the pin table cost: reading a 400 KB prompt, looking it up, and 100,000 entries in memory.

Plain hashes over the same bytes run beside it, as a measure of the machine. The last line is a JSON object.
"""

import importlib
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from hashlib import blake2b, sha256
from time import perf_counter
from typing import Final

from router_ext.model.prefix import Boundary, Prompt
from router_ext.model.request import Api
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.prompt import read_prompt
from router_ext.payload.prompt_chain import BLOCK
from router_ext.routing.pins import HOLDS_PER_ENTRY, PinTable

REPEATS: Final = 40
ENTRIES: Final = 100_000
PER_PROMPT: Final = 20
TEXT: Final = ("The quick brown fox jumps over the lazy dog. " * 9200)[:409_600]

Digest = Callable[[bytes], bytes]


def best_ms(work: Callable[[], object]) -> float:
    """Milliseconds of the fastest of ``REPEATS`` runs."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times) * 1000


def hashes() -> dict[str, Digest]:
    """The hashes that can be compared; BLAKE3 only where its package is installed."""
    known: dict[str, Digest] = {
        "SHA-256": lambda data: sha256(data).digest()[:16],
        "BLAKE2b": lambda data: blake2b(data, digest_size=16).digest(),
    }
    try:
        blake3 = importlib.import_module("blake3").blake3
    except ImportError:
        return known
    return known | {"BLAKE3": lambda data: bytes(blake3(data).digest(length=16))}


def chained(digest: Digest, data: bytes) -> bytes:
    """The least that a chain of blocks costs: one hash of the previous key and a block after another."""
    key = bytes(16)
    for start in range(0, len(data), BLOCK):
        key = digest(key + data[start : start + BLOCK])
    return key


def envelope(body: dict[str, object]) -> Envelope:
    """The body, read as the router reads it."""
    read = read_envelope(json.dumps(body).encode())
    assert isinstance(read, Envelope), read
    return read


def requests() -> dict[str, tuple[Api, Envelope]]:
    """Prompts of 400 KB of text, or as many tokens as that."""
    turns = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": TEXT[i * BLOCK : (i + 1) * BLOCK]}
        for i in range(len(TEXT) // BLOCK)
    ]
    return {
        "one_message": (Api.CHAT, envelope({"messages": [{"role": "user", "content": TEXT}]})),
        "200_messages": (Api.CHAT, envelope({"messages": turns})),
        "100k_token_ids": (Api.COMPLETIONS, envelope({"prompt": list(range(102_400))})),
    }


def compare_hashes() -> float:
    """Prints what each hash takes; returns that of plain SHA-256 over the whole text."""
    data = TEXT.encode()
    for name, digest in hashes().items():
        whole, blocks = best_ms(partial(digest, data)), best_ms(partial(chained, digest, data))
        print(f"{name:>8}: {whole:.3f} ms over 400 KB at once, {blocks:.3f} ms in chained blocks of 2 KiB")
    return best_ms(lambda: sha256(data).digest())


def compare_prompts() -> dict[str, float]:
    """Milliseconds of reading each kind of prompt, and of the table's two steps for it."""
    figures = {}
    for name, (api, body) in requests().items():
        chain = read_prompt(api, "m", body)
        table = PinTable(1800.0, ENTRIES)
        table.insert(Prompt((Boundary(b"another", 1),), 1), "b", 0.0)
        cold = best_ms(partial(table.match, chain.prompt, 0.0))
        inserting = best_ms(partial(table.insert, chain.extended(), "a", 0.0))
        warm = best_ms(partial(table.match, chain.prompt, 0.0))
        figures[name] = best_ms(partial(read_prompt, api, "m", body))
        print(
            f"{name:>15}: {figures[name]:.3f} ms to read, {len(chain.written)} boundaries; insert {inserting:.3f} ms,"
            f" match warm {warm:.3f} ms, cold {cold:.3f} ms"
        )
    return figures


def filled(holders: int, per_prompt: int) -> tuple[PinTable, float]:
    """A full table whose entries have this many backends each, and its size in MB."""
    tracemalloc.start()
    table = PinTable(1e9, ENTRIES)
    for number in range(0, ENTRIES, per_prompt):
        keys = [sha256(b"%d" % i).digest()[:16] for i in range(number, number + per_prompt)]
        prompt = Prompt(tuple(Boundary(key, BLOCK * (i + 1)) for i, key in enumerate(keys)), BLOCK * per_prompt)
        for holder in range(holders):
            table.insert(prompt, f"backend-{holder}", float(number + holder))
    size = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    return table, size


def main() -> None:
    """Runs everything and prints the result."""
    plain = compare_hashes()
    figures = compare_prompts()
    result = {"sha256_ms": plain} | {f"read_ms_{name}": figure for name, figure in figures.items()}
    for holders, per_prompt in (
        (1, PER_PROMPT),
        (2, PER_PROMPT),
        (HOLDS_PER_ENTRY, PER_PROMPT),
        (1, 1),
        (HOLDS_PER_ENTRY, 1),
    ):
        table, size = filled(holders, per_prompt)
        print(f"{len(table)} entries, {holders} backends each, {per_prompt} boundaries a prompt: {size:.1f} MB")
        result[f"mb_{holders}_backends_{per_prompt}_boundaries"] = size
    start = perf_counter()
    table.forget("backend-0")
    result["forget_ms"] = (perf_counter() - start) * 1000
    print(json.dumps({name: round(value, 3) for name, value in result.items()}))


if __name__ == "__main__":
    main()
