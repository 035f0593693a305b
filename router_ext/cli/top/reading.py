"""What a router says of itself at one moment, by its admin API."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from router_ext.admin.shapes.backends import Backends, BackendShown
from router_ext.admin.shapes.budgets import BudgetList, BudgetState
from router_ext.admin.shapes.costs import Costs
from router_ext.admin.shapes.figures import Queues, QueueShown, Stats
from router_ext.model.secret import Secret

DEADLINE_S: Final = 5.0
MAX_BYTES: Final = 2**25

Shape = TypeVar("Shape", bound=BaseModel)

_REFUSED: Final = {401: "the token is missing or wrong: set ROUTER_API_TOKEN", 403: "it asks for a token"}


class RouterAwayError(Exception):
    """The router cannot be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``at_s`` is of a monotonic clock. ``spend_usd`` is what each backend cost today, None where it is not known."""

    at_s: float
    stats: Stats
    backends: tuple[BackendShown, ...]
    queues: Mapping[str, QueueShown]
    budgets: tuple[BudgetState, ...]
    spend_usd: Mapping[str, float] | None


class Source:
    """A router's admin API at ``url``, which has no slash at the end. ``token`` is sent to it alone."""

    def __init__(self, url: str, token: Secret | None) -> None:
        self._url = url
        headers = {} if token is None else {"authorization": f"Bearer {token.reveal()}"}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE_S), headers=headers)

    async def close(self) -> None:
        """Ends its connections."""
        await self._session.close()

    async def read(self) -> Reading:
        """All of it. Raises RouterAwayError."""
        stats, backends, queues, budgets, spend = await asyncio.gather(
            self._get("/api/stats", Stats),
            self._get("/api/backends", Backends),
            self._get("/api/queue", Queues),
            self._get("/api/budgets", BudgetList),
            self._spend(),
        )
        by_name = {queue.backend: queue for queue in queues.queues}
        budget_states = tuple(budgets.budgets)
        return Reading(time.monotonic(), stats, tuple(backends.backends), by_name, budget_states, spend)

    async def _spend(self) -> Mapping[str, float] | None:
        """The ledger may be out of reach while everything else goes on."""
        try:
            return (await self._get("/api/costs?period=today", Costs)).by_backend
        except RouterAwayError:
            return None

    async def _get(self, path: str, shape: type[Shape]) -> Shape:
        try:
            async with self._session.get(self._url + path, allow_redirects=False) as answer:
                body = await _whole(answer) if answer.status == 200 else b""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RouterAwayError(f"{self._url} does not answer ({_reason(error)})") from None
        if answer.status != 200:
            why = _REFUSED.get(answer.status, f"status {answer.status} for {path}")
            raise RouterAwayError(f"{self._url} answers, but {why}")
        try:
            return shape.model_validate_json(body)
        except ValidationError:
            raise RouterAwayError(f"{self._url} is no router_ext of this version: {path} has another form") from None


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise aiohttp.ClientPayloadError("more than a router answers")
    return bytes(body)


def _reason(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorError():
            return os.strerror(error.errno) if error.errno else "no connection"
        case TimeoutError():
            return f"not within {DEADLINE_S:g} s"
        case _:
            return type(error).__name__
