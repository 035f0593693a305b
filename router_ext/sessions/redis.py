"""Sessions in Redis or Valkey, for several processes of router_ext and beyond their restarts.

Each call is one script on the server and one round trip, within a deadline. Nothing is sent twice: a call that failed
may or may not have been carried out, but never in part.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from router_ext.model.secret import Secret
from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.ports import SessionStoreError
from router_ext.redis_client import redis_client
from router_ext.sessions import scripts
from router_ext.sessions.blobs import Blobs
from router_ext.sessions.limits import StoreLimits

MAX_CONNECTIONS: Final = 32
"""Calls beyond it wait for a connection, within their deadline."""

THREADED_FROM: Final = 256 * 1024
"""Bytes. Compressing takes 10 ms a megabyte: below this less than a thread's hand-over may cost a busy loop."""

_Result = TypeVar("_Result")


class RedisStore:
    """Implements ``ports.SessionStore`` on one server (or one slot of a cluster). Used from one event loop.

    ``url`` is ``redis://``, ``rediss://`` or ``unix://`` with credentials and options as redis-py reads them. With
    ``key`` (see ``Blobs``) messages are encrypted; owners' digests, times and sizes are not. ``evicted`` is called once
    for each session that is given up, with an ``Eviction``, in the process whose call met it; not when the answer to
    that call was lost. ``timeout_s`` bounds each call. ``prefix`` begins every key. Times to live and the order of use
    are kept by the server's clock; ``now_s`` is only stored.

    Large sessions, ``create`` with a known id: as ``MemoryStore``. Raises ValueError for a bad URL or key.
    """

    def __init__(
        self,
        url: Secret,
        limits: StoreLimits,
        evicted: Callable[[str], None],
        *,
        key: Secret | None = None,
        timeout_s: float = 0.5,
        prefix: str = "router_ext",
    ) -> None:
        self._limits = (round(limits.ttl_s * 1000), limits.max_sessions, limits.max_bytes)
        self._evicted = evicted
        self._timeout_s = timeout_s
        self._blobs = Blobs(key)
        self.prefix = prefix
        self._client = redis_client(url, "the session store", MAX_CONNECTIONS)
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self._create = self._script(scripts.CREATE)
        self._load = self._script(scripts.LOAD)
        self._peek = self._script(scripts.PEEK)
        self._append = self._script(scripts.APPEND)
        self._delete = self._script(scripts.DELETE)
        self._holds = self._script(scripts.HOLDS)
        self._listed = self._script(scripts.LISTED)
        self._count = self._script(scripts.COUNT)

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """See ``ports.SessionStore``."""
        tokens = turn.estimated_tokens if turn.tokens is None else turn.tokens
        blobs = await self._packed(turn, session_id)
        if not await self._run(self._create, session_id, owner, repr(now_s), tokens, turn.bytes, *blobs):
            raise SessionStoreError("the new session's id is taken")

    async def load(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """See ``ports.SessionStore``."""
        return await self._read(self._load, session_id, owner, now_s)

    async def peek(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """See ``ports.SessionStore``."""
        return await self._read(self._peek, session_id, owner, now_s)

    async def _read(self, script: AsyncScript, session_id: str, owner: str, now_s: float) -> Session | None:
        found = await self._run(script, session_id, owner, repr(now_s))
        if found is None:
            return None
        meta = _meta(found[0])
        # A client library that mixed up two answers would give one caller the conversation of another.
        if (meta.id, meta.owner) != (session_id, owner):
            raise SessionStoreError("the session store answered for another session")
        return Session(meta, await _computed(meta.bytes, self._blobs.unpack, found[1], session_id))

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """See ``ports.SessionStore``. False also when the session has outgrown ``max_bytes``, and is gone for it."""
        tokens = "" if turn.tokens is None else turn.tokens
        sizes = (tokens, turn.estimated_tokens, turn.bytes)
        blobs = await self._packed(turn, session_id)
        return bool(await self._run(self._append, session_id, owner, repr(now_s), *sizes, *blobs))

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """See ``ports.SessionStore``."""
        return bool(await self._run(self._delete, session_id, *(() if owner is None else (owner,))))

    async def holds(self, session_id: str) -> bool:
        """See ``ports.SessionStore``."""
        return bool(await self._run(self._holds, session_id))

    async def listed(self, limit: int) -> Sequence[SessionMeta]:
        """See ``ports.SessionStore``."""
        return [_meta(fields) for fields in await self._run(self._listed, max(0, limit))]

    async def count(self) -> int:
        """See ``ports.SessionStore``."""
        return int(await self._run(self._count))

    async def close(self) -> None:
        """Closes the connections; what is stored stays."""
        await self._client.aclose()

    async def _packed(self, turn: Turn, session_id: str) -> list[bytes]:
        return await _computed(turn.bytes, self._blobs.pack, turn.messages, session_id)

    def _script(self, text: str) -> AsyncScript:
        return self._client.register_script(text)

    async def _run(self, script: AsyncScript, *arguments: bytes | str | int) -> Any:
        """The script's own result; what it gave up is reported."""
        try:
            async with asyncio.timeout(self._timeout_s), self._free:
                gone, result = await script(keys=[f"{{{self.prefix}}}"], args=[*self._limits, *arguments])
        except (RedisError, OSError, TimeoutError) as error:
            raise SessionStoreError(f"the session store does not answer: {type(error).__name__}") from error
        for reason, number in zip(scripts.GONE, gone, strict=False):
            for _ in range(number):
                self._evicted(reason)
        return result


async def _computed(
    size: int, work: Callable[[Sequence[bytes], str], _Result], pieces: Sequence[bytes], session_id: str
) -> _Result:
    """What ``work`` makes of messages of ``size`` bytes; in a thread when that would hold up everyone else."""
    if size < THREADED_FROM:
        return work(pieces, session_id)
    return await asyncio.to_thread(work, pieces, session_id)


def _meta(fields: Sequence[bytes]) -> SessionMeta:
    session_id, owner, created_s, used_s, turns, tokens, size = (field.decode() for field in fields)
    return SessionMeta(session_id, owner, float(created_s), float(used_s), int(turns), int(tokens), int(size))
