"""What the supervisor asks its workers: HTTP over a Unix socket that nobody else can reach."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

from router_ext.workers.place import WorkerFolder

TIMEOUT_S: Final = 2.0
"""A worker that takes longer for an answer is away."""

CHANGE_TIMEOUT_S: Final = 15.0
"""A worker that takes longer for a change may have made it, or not."""

_URL: Final = "http://localhost"


class WorkerAwayError(Exception):
    """A worker did not answer, or not in time. ``reached``: it has got the request, and may have acted on it."""

    def __init__(self, message: str, *, reached: bool) -> None:
        super().__init__(message)
        self.reached = reached


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """``target`` is path and query, percent-encoded as it is to be sent."""

    target: str
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S


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


async def ask(folder: WorkerFolder, worker: int, request: WorkerRequest) -> WorkerAnswer:
    """One request. Raises WorkerAwayError."""
    timeout = aiohttp.ClientTimeout(total=request.timeout_s)
    connector = aiohttp.UnixConnector(str(folder.admin_socket(worker)))
    url = URL(_URL + request.target, encoded=True)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.request(request.method, url, data=request.body or None, headers=request.headers) as answer,
        ):
            body = await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        reached = not isinstance(error, aiohttp.ClientConnectorError)
        raise WorkerAwayError(f"worker {worker}: {type(error).__name__}", reached=reached) from None
    return WorkerAnswer(answer.status, body, answer.content_type, answer.headers.get("retry-after"))


async def ask_all(
    folder: WorkerFolder, workers: Sequence[int], request: WorkerRequest | str
) -> dict[int, WorkerAnswer]:
    """The answers of those who answer, by worker. Text is the target of a GET."""
    asked = WorkerRequest(request) if isinstance(request, str) else request
    answers = await asyncio.gather(*(_ask_if_there(folder, worker, asked) for worker in workers))
    return {worker: answer for worker, answer in zip(workers, answers, strict=True) if answer is not None}


async def ask_any(folder: WorkerFolder, workers: Sequence[int], request: WorkerRequest | str) -> WorkerAnswer:
    """The answer of the first one that answers, for what they all know. Raises WorkerAwayError when nobody does.

    A worker that accepted the request and died may have acted on it: what is asked must bear being asked twice. Text is
    the target of a GET.
    """
    asked = WorkerRequest(request) if isinstance(request, str) else request
    for worker in workers:
        answer = await _ask_if_there(folder, worker, asked)
        if answer is not None:
            return answer
    raise WorkerAwayError("no worker answers", reached=False)


async def ask_one(folder: WorkerFolder, workers: Sequence[int], request: WorkerRequest) -> tuple[int, WorkerAnswer]:
    """The first worker that takes the request, and its answer. Nobody is asked after one that may have acted on it.
    Raises WorkerAwayError.
    """
    for worker in workers:
        try:
            return worker, await ask(folder, worker, request)
        except WorkerAwayError as error:
            if error.reached:
                raise
    raise WorkerAwayError("no worker answers", reached=False)


async def _ask_if_there(folder: WorkerFolder, worker: int, request: WorkerRequest) -> WorkerAnswer | None:
    try:
        return await ask(folder, worker, request)
    except WorkerAwayError:
        return None
