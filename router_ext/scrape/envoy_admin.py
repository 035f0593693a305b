"""Envoy's own count of open requests, from its admin port."""

import asyncio
from typing import Final

import aiohttp
import orjson

from router_ext.engine.engine import Engine

LOOK_INTERVAL_S: Final = 1.0
_PREFIX: Final = "cluster."
_SUFFIX: Final = ".upstream_rq_active"


def active_requests(page: bytes) -> dict[str, int]:
    """Open requests by cluster name, from a ``/stats?format=json`` page. Empty for anything else."""
    try:
        stats = orjson.loads(page)["stats"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return {}
    return {
        entry["name"].removeprefix(_PREFIX).removesuffix(_SUFFIX): int(entry["value"])
        for entry in stats
        if entry.get("name", "").startswith(_PREFIX) and entry["name"].endswith(_SUFFIX)
    }


async def reconcile_with_envoy(engine: Engine, port: int) -> None:
    """Holds the engine's counts against Envoy's until cancelled. Without Envoy nothing is reconciled."""
    url = f"http://127.0.0.1:{port}/stats"
    query = {"format": "json", "filter": r"^cluster\.backend-.*\.upstream_rq_active$"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LOOK_INTERVAL_S)) as session:
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                async with session.get(url, params=query) as answer:
                    page = await answer.read()
            except (aiohttp.ClientError, TimeoutError):
                continue
            engine.reconcile(active_requests(page))
