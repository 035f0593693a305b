"""A prompt as the timing model sees it: a number of tokens and a chain of block hashes.

The tokeniser is the plainest one that keeps prefixes: every 4 bytes of the rendered prompt are a token.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from router_ext.demo.sim.errors import ApiError, prompt_too_long
from router_ext.demo.sim.settings import SimSettings

BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Prompt:
    """``blocks`` holds one hash for each full block; hash i depends on everything before block i and on the salt.

    ``digest`` names the text alone and is the same in every process; block hashes are meaningful in one process only.
    """

    tokens: int
    blocks: tuple[int, ...]
    digest: int


def count_tokens(rendered: bytes) -> int:
    """Tokens of a rendered prompt: a started group of 4 bytes counts; never less than 1."""
    return max(1, -(-len(rendered) // BYTES_PER_TOKEN))


def read_prompt(rendered: bytes, salt: str, settings: SimSettings) -> Prompt | ApiError:
    """The prompt, or the refusal when the model's context is too small. Prompts of two salts share no block."""
    tokens = count_tokens(rendered)
    if tokens > settings.max_model_len:
        return prompt_too_long(settings.max_model_len)
    blocks = tuple(_chain(rendered, salt, settings.block_size * BYTES_PER_TOKEN))
    digest = int.from_bytes(hashlib.blake2b(rendered, digest_size=8).digest())
    return Prompt(tokens, blocks, digest)


def _chain(rendered: bytes, salt: str, size: int) -> Iterator[int]:
    previous = hash(salt)
    for end in range(size, len(rendered) + 1, size):
        previous = hash((previous, rendered[end - size : end]))
        yield previous
