"""Asks places on the network what listens there. Every question has a deadline, and every answer a largest size."""

import asyncio
from collections.abc import Sequence
from typing import Final

import aiohttp
import orjson

from router_ext.cli.starting.engines import MODELS, PATHS, Answer, Engine, Place, recognized

DEADLINE_S: Final = 2.0
MAX_BYTES: Final = 2**20
_AT_A_TIME: Final = 64

PORTS: Final = (
    *range(8000, 8004),  # vLLM
    *range(30000, 30004),  # SGLang
    *range(8080, 8084),  # llama.cpp
    *range(11434, 11436),  # Ollama
)
"""Where engines listen by default, and where further ones of a machine usually do."""


async def scan(places: Sequence[Place]) -> list[Engine]:
    """The engines at ``places``, in that order."""
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=DEADLINE_S),
        connector=aiohttp.TCPConnector(limit=_AT_A_TIME),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A compressed answer could become larger than any limit.
        auto_decompress=False,
        headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "router-ext-init"},
    ) as session:
        found = await asyncio.gather(*(_engine(session, place) for place in places))
    return [engine for engine in found if engine is not None]


async def _engine(session: aiohttp.ClientSession, place: Place) -> Engine | None:
    """The list of models is asked for first: what does not know it is left alone."""
    models = await _answer(session, place, MODELS)
    if models is None:
        return None
    others = [path for path in PATHS if path != MODELS]
    answers = await asyncio.gather(*(_answer(session, place, path) for path in others))
    given = {path: answer for path, answer in zip(others, answers, strict=True) if answer is not None}
    return recognized(place, {MODELS: models, **given})


async def _answer(session: aiohttp.ClientSession, place: Place, path: str) -> Answer | None:
    """None for what is no HTTP answer within the deadline and the size."""
    try:
        async with session.get(f"http://{place}{path}", allow_redirects=False) as response:
            body = await _bounded(response.content)
            return None if body is None else Answer(response.status, _json(body))
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None


async def _bounded(content: aiohttp.StreamReader) -> bytes | None:
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


def _json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
