"""What the supervisor asks its workers: HTTP over a Unix socket that nobody else can reach."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from router_ext.workers.place import WorkerFolder

TIMEOUT_S: Final = 2.0
"""A worker that takes longer for an answer is away."""

_URL: Final = "http://localhost"


class WorkerAwayError(Exception):
    """A worker did not answer, or not in time."""


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """A worker's answer to one request."""

    status: int
    body: bytes
    content_type: str
    retry_after: str | None

    def json(self) -> Any:
        """The body, which a worker writes as JSON."""
        return orjson.loads(self.body)


async def ask(folder: WorkerFolder, worker: int, target: str, method: str = "GET") -> WorkerAnswer:
    """One request. ``target`` is path and query. Raises WorkerAwayError."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    connector = aiohttp.UnixConnector(str(folder.admin_socket(worker)))
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.request(method, f"{_URL}{target}") as answer,
        ):
            body = await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise WorkerAwayError(f"worker {worker}: {type(error).__name__}") from None
    return WorkerAnswer(answer.status, body, answer.content_type, answer.headers.get("retry-after"))


async def ask_all(folder: WorkerFolder, workers: Sequence[int], target: str) -> dict[int, WorkerAnswer]:
    """The answers (to GET) of those who answer, by worker."""
    answers = await asyncio.gather(*(_ask_if_there(folder, worker, target) for worker in workers))
    return {worker: answer for worker, answer in zip(workers, answers, strict=True) if answer is not None}


async def ask_any(folder: WorkerFolder, workers: Sequence[int], target: str, method: str) -> WorkerAnswer:
    """The answer of the first one that answers, for what they all know. Raises WorkerAwayError when nobody does.

    A worker that accepted the request and died may have acted on it: what is asked must bear being asked twice.
    """
    for worker in workers:
        answer = await _ask_if_there(folder, worker, target, method)
        if answer is not None:
            return answer
    raise WorkerAwayError("no worker answers")


async def _ask_if_there(folder: WorkerFolder, worker: int, target: str, method: str = "GET") -> WorkerAnswer | None:
    try:
        return await ask(folder, worker, target, method)
    except WorkerAwayError:
        return None
