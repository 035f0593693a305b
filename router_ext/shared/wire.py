"""Events as messages: MessagePack arrays of a version, the sender and the event, whose first element names its kind.

Whoever reaches the server may send anything: what is not one of these messages is told apart from what is, and nothing
else. Fields that a later version adds at an end are skipped.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from router_ext.model.shared import SharedEvent

VERSION: Final = 1
"""Of messages that mean something else under the same name. Routers ignore those of other versions."""

MAX_BYTES: Final = 8192
"""Largest message. The largest event, with 64 boundaries and names of 512 bytes, has 3.4 KB."""


class Message(Struct, frozen=True, array_like=True):
    """One message. ``sender`` differs between processes; without an ``event`` it only shows that the way is open."""

    version: int
    sender: Annotated[str, Meta(min_length=1, max_length=64)]
    event: SharedEvent | None = None


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Message)


def encode(sender: str, event: SharedEvent | None) -> bytes:
    """The message of an event, or of none."""
    return _ENCODER.encode(Message(VERSION, sender, event))


def decode(data: bytes) -> Message | None:
    """The message; None for what is none, is longer than ``MAX_BYTES``, or has another version. Never raises."""
    if len(data) > MAX_BYTES:
        return None
    try:
        message = _DECODER.decode(data)
    except (ValueError, RecursionError):  # A msgspec error is a ValueError, as is text that is not UTF-8.
        return None
    return message if message.version == VERSION else None


def kind(event: SharedEvent) -> str:
    """The name of an event's kind, which is also a metric label."""
    tag = event.__struct_config__.tag
    return str(tag)
