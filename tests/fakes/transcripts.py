"""Short ways from a chat request and a stored conversation to what a turn makes of them."""

import json
from collections.abc import Sequence
from typing import Any

from router_ext.model.rejection import Rejection
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.transcript import Fresh, fresh_messages, hydrated, read_messages


def envelope(raw: bytes) -> Envelope:
    """The envelope of a body that is one."""
    read = read_envelope(raw)
    assert isinstance(read, Envelope), read
    return read


def elements(raw: bytes) -> tuple[bytes, ...]:
    """The messages of a body that has some."""
    messages = read_messages(envelope(raw))
    assert not isinstance(messages, Rejection), messages
    return messages


def texts(*messages: object) -> tuple[bytes, ...]:
    """Each message as JSON with spaces, as Python writes it."""
    return tuple(json.dumps(message).encode() for message in messages)


def fresh(messages: Sequence[bytes], stored: Sequence[bytes]) -> Fresh:
    """What the turn adds, where it adds something."""
    turn = fresh_messages(messages, stored)
    assert isinstance(turn, Fresh), turn
    return turn


def sent(raw: bytes, stored: Sequence[bytes]) -> bytes:
    """The hydrated body of a turn."""
    return hydrated(envelope(raw), stored, fresh(elements(raw), stored))


def conversation(stored: Sequence[object], *turn: object) -> list[Any]:
    """The messages that a backend gets when ``turn`` is sent to a session with ``stored`` messages."""
    raw = json.dumps({"model": "m", "messages": turn}).encode()
    messages: list[Any] = json.loads(sent(raw, texts(*stored)))["messages"]
    return messages
