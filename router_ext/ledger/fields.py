"""Parts of a ledger as fields of a hash: the name and the value are JSON arrays, which an operator can read.

Whoever reaches the server may write anything: what is no part is left out. What a later version adds to the end of a
name is skipped.
"""

from datetime import date
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from router_ext.model.ledger import MAX_COUNT, Key, Part, Row
from router_ext.model.shared import RouterId, Service

_Text = Annotated[str, Meta(max_length=512)]
_Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]


class _Name(Struct, frozen=True, array_like=True):
    router: RouterId
    service: Service
    backend: _Text
    model: _Text
    kind: _Text


class _Sums(Struct, frozen=True, array_like=True):
    calls: _Count
    estimated_calls: _Count
    prompt_tokens: _Count
    cached_tokens: _Count
    completion_tokens: _Count
    micro_usd: _Count


_NAMES: Final = msgspec.json.Decoder(_Name)
_SUMS: Final = msgspec.json.Decoder(_Sums)
_UNREADABLE: Final = (ValueError, RecursionError)
"""A msgspec error is a ValueError, as is text that is not UTF-8."""


def name_of(part: Part) -> bytes:
    """The field's name: ``["ROUTER","SERVICE","BACKEND","MODEL","KIND"]``."""
    key = part.row.key
    return msgspec.json.encode((part.router, key.service, key.backend, key.model, key.kind))


def value_of(part: Part) -> bytes:
    """The field's value: ``[CALLS,ESTIMATED,PROMPT,CACHED,COMPLETION,MICRO_USD]``, as ``model.ledger.Row`` has them."""
    row = part.row
    tokens = row.prompt_tokens, row.cached_tokens, row.completion_tokens
    return msgspec.json.encode((row.calls, row.estimated_calls, *tokens, row.micro_usd))


def part_of(day: date, name: bytes, value: bytes) -> Part | None:
    """The part that a field of ``day`` holds; None for what is none. Never raises."""
    try:
        named, sums = _NAMES.decode(name), _SUMS.decode(value)
    except _UNREADABLE:
        return None
    key = Key(day, named.service, named.backend, named.model, named.kind)
    return Part(named.router, Row(key, *msgspec.structs.astuple(sums)))
