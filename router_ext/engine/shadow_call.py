"""Asking a backend under test what it would have said.

It gets the request as one that fails over would: its own model name, path and key. Of the client's credentials it gets
none, also where it has no key: they are for another provider.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final

from router_ext.engine.attempts import Attempt
from router_ext.engine.credentials import credential_edits
from router_ext.engine.exchanges import KeptRequest
from router_ext.engine.forwarding import call_of
from router_ext.engine.opening import OpenedWhole, open_whole
from router_ext.model.backend import CREDENTIAL_HEADERS
from router_ext.model.money import SHADOW
from router_ext.model.outcome import StreamEnd, Usage
from router_ext.ports import Call, CutError, Dispatcher, UnreachableError, UpstreamAnswer
from router_ext.stream.answer import StreamReader

_OF_THE_CLIENT: Final = frozenset(
    (*CREDENTIAL_HEADERS, "cookie", "proxy-authorization", "openai-organization", "openai-project", "idempotency-key")
)
"""Who the client is at its provider, and by which key that would give the answer of the first request again."""

_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a call. ``body`` is None where that is no whole 2xx answer; ``usage`` is counted all the same."""

    body: bytes | None = field(repr=False)
    usage: Usage | None


_NOTHING: Final = Said(None, None)


def shadow_call(kept: KeptRequest, attempt: Attempt) -> Call:
    """The request as the backend of ``attempt`` gets it. A stream is asked for its token counts."""
    backend = attempt.slot.state.backend
    asks_usage = kept.body.request.stream and backend.traits.takes_stream_options
    call = call_of(kept.head, kept.body, attempt, asks_usage=asks_usage)
    keys, _ = credential_edits(backend)
    others = tuple((name, value) for name, value in call.headers if name not in _OF_THE_CLIENT)
    return replace(call, headers=(*others, *keys), request_id=f"{attempt.decision.id}.{SHADOW}")


async def ask(dispatcher: Dispatcher, call: Call, timeout_s: float, limit: int) -> Said:
    """The whole answer, if it is there within the time and no larger than ``limit`` bytes."""
    try:
        async with asyncio.timeout(timeout_s), dispatcher.post(call) as answer:
            return _said(answer, await open_whole(answer, limit))
    except (TimeoutError, UnreachableError, CutError):
        return _NOTHING


def _said(answer: UpstreamAnswer, opened: OpenedWhole) -> Said:
    good = 200 <= answer.status < 300 and opened.more is None and _is_whole(answer, opened.body)
    return Said(opened.body if good else None, opened.reader.usage)


def _is_whole(answer: UpstreamAnswer, body: bytes) -> bool:
    if not answer.header("content-type").lower().startswith(_STREAM):
        return True
    reader = StreamReader()
    reader.feed(body)
    return reader.end is StreamEnd.WHOLE
