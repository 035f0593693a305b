"""One client: sends a planned request when it is due, and says how it went."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from benchmarks.chaos.traffic import Planned
from benchmarks.chaos.verdict import fault_of_plain, fault_of_stream
from router_ext.model.headers import ATTEMPTS, BACKEND

PATIENCE_S: Final = 30.0
"""Slow is not failed: longer than any fault lasts."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one request went: ``failure`` in a few words, None for a good answer.

    ``latency_s`` runs from the time at which the request was due to the end of its answer. ``backend`` is empty where
    the router named none; ``attempts`` is the number of backends that it says it asked, 1 where it does not say.
    """

    at_s: float
    stream: bool
    latency_s: float
    failure: str | None = None
    backend: str = ""
    attempts: int = 1


async def send_all(url: str, planned: Sequence[Planned], started: float) -> list[Result]:
    """Every request at its time after ``started``, in monotonic seconds; the results in the same order."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        return await asyncio.gather(*(_send(session, url, request, started) for request in planned))


async def _send(session: aiohttp.ClientSession, url: str, request: Planned, started: float) -> Result:
    due = started + request.at_s
    await asyncio.sleep(due - time.monotonic())
    failure, backend, attempts = await _ask(session, url, request)
    return Result(request.at_s, request.stream, time.monotonic() - due, failure, backend, attempts)


async def _ask(session: aiohttp.ClientSession, url: str, request: Planned) -> tuple[str | None, str, int]:
    backend, attempts = "", 1
    try:
        async with session.post(url + "/v1/chat/completions", json=request.body) as answer:
            backend, attempts = answer.headers.get(BACKEND, ""), int(answer.headers.get(ATTEMPTS, "1"))
            failure = _fault(request, answer.status, await answer.read())
    except TimeoutError:
        failure = "client timeout"
    except aiohttp.ClientError as error:
        failure = f"{type(error).__name__}: {error}"
    return failure, backend, attempts


def _fault(request: Planned, status: int, body: bytes) -> str | None:
    if status != 200:
        return f"status {status}: {body[:120].decode(errors='replace')}"
    return fault_of_stream(body) if request.stream else fault_of_plain(body)
