"""Events as messages: MessagePack arrays of a version, the sender and events, each an array that begins with its kind.

Whoever reaches the server may send anything: what is not one of these messages is told apart from what is, and nothing
else. Fields that a later version adds at an end are skipped, as are events of kinds that are not known here.
"""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from router_ext.model.shared import SharedEvent

VERSION: Final = 1
"""Of messages that mean something else under the same name. Routers ignore those of other versions."""

MAX_EVENTS: Final = 32
"""Most events of one message."""

MAX_BYTES: Final = 512 * 1024
"""Largest message. The largest event, with 100 totals of services of 128 characters, has 14.2 KB; one of a prompt, with
64 boundaries and names of 512 bytes, has 3.4 KB.
"""


class Message(Struct, frozen=True, array_like=True):
    """One message. ``sender`` differs between processes; without ``events`` it only shows that the way is open."""

    version: int
    sender: Annotated[str, Meta(min_length=1, max_length=64)]
    events: Annotated[tuple[Raw, ...], Meta(max_length=MAX_EVENTS)]


_ENCODER: Final = msgspec.msgpack.Encoder()
_MESSAGES: Final = msgspec.msgpack.Decoder(Message)
_EVENTS: Final[msgspec.msgpack.Decoder[SharedEvent]] = msgspec.msgpack.Decoder(SharedEvent)

_UNREADABLE: Final = (ValueError, RecursionError)
"""A msgspec error is a ValueError, as is text that is not UTF-8."""


def encode(sender: str, events: Sequence[SharedEvent]) -> bytes:
    """The message of up to ``MAX_EVENTS`` events."""
    return _ENCODER.encode((VERSION, sender, events))


def decode(data: bytes) -> Message | None:
    """The message; None for what is none, is longer than ``MAX_BYTES``, or has another version. Never raises."""
    if len(data) > MAX_BYTES:
        return None
    try:
        message = _MESSAGES.decode(data)
    except _UNREADABLE:
        return None
    return message if message.version == VERSION else None


def decode_event(data: Raw) -> SharedEvent | None:
    """The event; None for what is none that is known here. Never raises."""
    try:
        return _EVENTS.decode(data)
    except _UNREADABLE:
        return None


def kind(event: SharedEvent) -> str:
    """The name of an event's kind, which is also a metric label."""
    return str(event.__struct_config__.tag)
