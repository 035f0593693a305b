"""Compressed request bodies: inflated to be read, within a bound."""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

import zstandard

from router_ext.model.rejection import Reason, Rejection

_STEP: Final = 64 * 1024

MAX_MEMBERS: Final = 1024
"""Most members of a gzip body: each costs time of its own, however short it is."""


def decoded(raw: bytes, content_encoding: str, limit: int) -> bytes | Rejection:
    """The body without its ``Content-Encoding``.

    Inflating stops at ``limit`` bytes, whatever the ratio. Refuses codings other than gzip, deflate and zstd (415),
    damaged data (400) and results over the limit (413).
    """
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return raw
    inflate = _INFLATERS.get(coding)
    if inflate is None:
        return Rejection(Reason.UNSUPPORTED_ENCODING, "Content-Encoding must be gzip, deflate, zstd or identity.")
    try:
        return _bounded(inflate(raw, limit), limit)
    except (zlib.error, zstandard.ZstdError):
        return Rejection(Reason.BAD_ENCODING, f"The body is not valid {coding} data.")


def _bounded(pieces: Iterator[bytes], limit: int) -> bytes | Rejection:
    size = 0
    parts: list[bytes] = []
    for piece in pieces:
        size += len(piece)
        if size > limit:
            return Rejection(Reason.BODY_TOO_LARGE, f"The decoded body is larger than {limit} bytes.")
        parts.append(piece)
    return b"".join(parts)


def _inflated(raw: bytes, window_bits: int, members: int = 1) -> Iterator[bytes]:
    """Slice by slice, since zlib copies what it leaves over: linear in the size of ``raw``."""
    engine = zlib.decompressobj(window_bits)
    for at in range(0, len(raw), _STEP):
        rest, more = raw[at : at + _STEP], False
        while rest or more:
            if engine.eof:
                engine, members = zlib.decompressobj(window_bits), members - 1
            if not members:
                raise zlib.error("data after the end")
            piece = engine.decompress(rest, _STEP)
            yield piece
            # A full piece: zlib may hold back output although it took all of its input.
            more = len(piece) == _STEP and not engine.eof
            rest = engine.unused_data if engine.eof else engine.unconsumed_tail
    if not engine.eof:
        raise zlib.error("incomplete data")


def _gzip(raw: bytes, limit: int) -> Iterator[bytes]:
    """RFC 1952: a file may hold several members, one after the other."""
    return _inflated(raw, 16 + zlib.MAX_WBITS, MAX_MEMBERS)


def _deflate(raw: bytes, limit: int) -> Iterator[bytes]:
    """RFC 9110 means the zlib format; some clients send bare deflate data."""
    wrapped = len(raw) >= 2 and raw[0] & 0x0F == 8 and (raw[0] << 8 | raw[1]) % 31 == 0
    return _inflated(raw, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def _zstd(raw: bytes, limit: int) -> Iterator[bytes]:
    """A frame that ends early is read as far as it goes: what is missing shows when the text is parsed."""
    # The window is what a decoder must hold: bounded, so that a small frame cannot claim gigabytes.
    window = max(limit, 1 << 23)
    reader = zstandard.ZstdDecompressor(max_window_size=1 << (window - 1).bit_length()).stream_reader(
        raw, read_across_frames=True
    )
    while piece := reader.read(_STEP):
        yield piece


_INFLATERS: Final[dict[str, Callable[[bytes, int], Iterator[bytes]]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
