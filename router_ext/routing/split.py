"""Which variant of an A/B test a caller gets: the same one always, in every process, without anything remembered."""

from hashlib import blake2b
from typing import Final, Literal

_HASH_BYTES: Final = 8
_HASHES: Final = 2 ** (8 * _HASH_BYTES)


def variant(test_name: str, key: str, split_pct: float) -> Literal["a", "b"]:
    """The variant of the caller ``key``; ``split_pct`` (0..100) percent of all keys get ``b``.

    Each key has a fixed place from 0 to below 100, even over all keys, and gets ``b`` when ``split_pct`` is above it.
    So another ``split_pct`` moves only the difference, and all of it in one direction. The places of another test are
    independent of these: ``test_name``, printable ASCII, is part of what is hashed.
    """
    digest = blake2b(f"{test_name}\0{key}".encode(), digest_size=_HASH_BYTES).digest()
    return "b" if int.from_bytes(digest, "big") < split_pct / 100 * _HASHES else "a"


def caller_key(persona_id: str, session_id: str, request_id: str) -> str:
    """What a caller is known by: its persona, else its session, else this request alone.

    The first that is not empty. A caller without persona and session so gets a variant anew with each request, at
    random if ``request_id`` is.
    """
    return persona_id or session_id or request_id
