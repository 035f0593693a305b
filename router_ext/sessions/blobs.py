"""Messages as a server keeps them: compressed when that pays, sealed when there is a key.

The first byte of a blob says how to read the rest. A sealed blob holds another blob, and opens only for the session
that it was written for.
"""

import base64
import os
from collections.abc import Iterable
from typing import Final

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from router_ext.model.secret import Secret
from router_ext.ports import SessionStoreError

COMPRESSED_FROM: Final = 1024
"""Bytes. Shorter messages gain little, and most of them would grow by the frame."""

_PLAIN: Final = b"\x00"
_ZSTD: Final = b"\x01"
_SEALED: Final = b"\x02"
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32


class Blobs:
    """Packs and unpacks messages; calls may run in several threads. ``key`` is 32 bytes in base64 or hexadecimal, for
    AES-256-GCM; None: nothing is sealed. Raises ValueError for another form of key, without showing it.
    """

    def __init__(self, key: Secret | None = None) -> None:
        self._aead = None if key is None else AESGCM(_key_bytes(key))

    def pack(self, messages: Iterable[bytes], session_id: str) -> list[bytes]:
        """The blobs to keep, in order."""
        # Of zstandard's objects each belongs to one thread.
        compressor = zstandard.ZstdCompressor()
        packed = [_compressed(compressor, message) for message in messages]
        if self._aead is None:
            return packed
        return [_sealed(self._aead, blob, session_id) for blob in packed]

    def unpack(self, blobs: Iterable[bytes], session_id: str) -> tuple[bytes, ...]:
        """The messages. Raises SessionStoreError for a blob that was damaged, made with another key or for another
        session, or not sealed while there is a key: whoever can write to the server cannot forge a conversation.
        """
        if self._aead is not None:
            blobs = [_opened(self._aead, blob, session_id) for blob in blobs]
        decompressor = zstandard.ZstdDecompressor()
        return tuple([_decompressed(decompressor, blob) for blob in blobs])


def _compressed(compressor: zstandard.ZstdCompressor, message: bytes) -> bytes:
    if len(message) >= COMPRESSED_FROM:
        short = compressor.compress(message)
        if len(short) < len(message):
            return _ZSTD + short
    return _PLAIN + message


def _decompressed(decompressor: zstandard.ZstdDecompressor, blob: bytes) -> bytes:
    marker, rest = blob[:1], blob[1:]
    if marker == _PLAIN:
        return rest
    if marker != _ZSTD:
        raise SessionStoreError("a stored message is sealed or of an unknown form")
    try:
        return decompressor.decompress(rest)
    except zstandard.ZstdError as error:
        raise SessionStoreError("a stored message is damaged") from error


def _sealed(aead: AESGCM, blob: bytes, session_id: str) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return _SEALED + nonce + aead.encrypt(nonce, blob, session_id.encode())


def _opened(aead: AESGCM, blob: bytes, session_id: str) -> bytes:
    if blob[:1] != _SEALED:
        raise SessionStoreError("a stored message is not sealed")
    nonce, rest = blob[1 : 1 + _NONCE_BYTES], blob[1 + _NONCE_BYTES :]
    try:
        return aead.decrypt(nonce, rest, session_id.encode())
    except (InvalidTag, ValueError) as error:
        raise SessionStoreError("a stored message does not open with this key") from error


def _key_bytes(key: Secret) -> bytes:
    text = key.reveal().strip()
    try:
        raw = _decoded(text)
    except ValueError:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise ValueError(f"the session key ({key.source}) must be {_KEY_BYTES} bytes in base64 or hexadecimal")
    return raw


def _decoded(text: str) -> bytes:
    """64 hexadecimal digits are valid base64 as well, but of 48 bytes."""
    if len(text) == 2 * _KEY_BYTES:
        return bytes.fromhex(text)
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
