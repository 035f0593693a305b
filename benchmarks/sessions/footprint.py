"""What the stores take for many large sessions, against the bytes of their messages."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil
from redis.asyncio import Redis

from benchmarks.sessions.texts import Writer
from router_ext.model.session import Turn
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.redis import RedisStore
from tests.fakes.valkey_server import valkey_server

SESSIONS: Final = 1000
SESSION_BYTES: Final = 400_000

SHARE: Final = 0.5
"""Of the free memory, what a store may come to take."""

EXPECTED: Final = 1.3
"""Bytes that a store may take for one byte of a message."""

_AT_ONCE: Final = 4
_OWNER: Final = "0" * 32
_CGROUP: Final = Path("/sys/fs/cgroup")


def affordable(free_bytes: int) -> int:
    """How many sessions fit in a share of the free memory: at most ``SESSIONS``, at least one."""
    return max(1, min(SESSIONS, int(free_bytes * SHARE / (SESSION_BYTES * EXPECTED))))


def free_memory() -> int:
    """Bytes that this process and its children may still take, by the machine and by its control group."""
    free = int(psutil.virtual_memory().available)
    try:
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


async def measure(count: int) -> dict[str, Any]:
    """Ratios and bytes of both stores, one after the other."""
    memory = await _in_memory(count)
    message_bytes, grown = await _in_valkey(count)
    return {
        "store_sessions": count,
        "store_message_bytes": memory["message_bytes"],
        "store_overhead_ratio": round(memory["grown"] / memory["message_bytes"], 3),
        "store_process_ratio": round(memory["resident"] / memory["message_bytes"], 3),
        "valkey_overhead_ratio": round(grown / message_bytes, 3),
    }


async def _in_memory(count: int) -> dict[str, int]:
    argv = (sys.executable, "-m", "benchmarks.sessions.held", str(count), str(SESSION_BYTES))
    child = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    if child.returncode:
        raise RuntimeError(f"the process with the sessions failed: {child.returncode}")
    figures: dict[str, int] = json.loads(output.splitlines()[-1])
    return figures


async def _in_valkey(count: int) -> tuple[int, int]:
    """Bytes of the messages, and what the server took for them."""
    with valkey_server() as server:
        store = RedisStore(server.url, StoreLimits(7200, count, 2 * count * SESSION_BYTES), sys.exit, timeout_s=10)
        client = Redis.from_url(server.url.reveal())
        before = await _used_memory(client)
        writer, turns = Writer(), asyncio.Semaphore(_AT_ONCE)
        sizes = await asyncio.gather(*(_keep(store, number, writer, turns) for number in range(count)))
        used = await _used_memory(client)
        await client.aclose()
        await store.close()
    return sum(sizes), used - before


async def _used_memory(client: Redis) -> int:
    return int((await client.info("memory"))["used_memory"])


async def _keep(store: RedisStore, number: int, writer: Writer, turns: asyncio.Semaphore) -> int:
    async with turns:
        turn = Turn(tuple(writer.conversation(SESSION_BYTES)), 1)
        await store.create(f"sess_{number:036d}", _OWNER, turn, time.time())
        return turn.bytes
