"""The session stores, each behind the same handle: what a test needs beside the port itself."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from router_ext.model.secret import Secret
from router_ext.model.session import Turn
from router_ext.ports import SessionStore
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore
from router_ext.sessions.redis import RedisStore
from tests.fakes.valkey_server import ValkeyServer

ROOMY = StoreLimits(ttl_s=60.0, max_sessions=1000, max_bytes=1 << 30)
KEY = Secret("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "env:SESSION_KEY")
OTHER_KEY = Secret("ff" * 32, "env:SESSION_KEY")
POLL_S = 0.01


@dataclass
class Bench:
    """A store under test. ``evicted`` are the reasons so far, ``now_s`` the time that calls are to be given."""

    store: SessionStore
    tick: Callable[["Bench"], None]
    evicted: list[str] = field(default_factory=list)
    now_s: float = 1_700_000_000.0

    async def create(self, session_id: str, *messages: bytes, owner: str = "ann") -> None:
        """A new session, of the owner ``ann`` unless told otherwise."""
        await self.store.create(session_id, owner, Turn(messages), self.now_s)

    async def append(self, session_id: str, *messages: bytes, owner: str = "ann") -> bool:
        """One more turn."""
        return await self.store.append(session_id, owner, Turn(messages), self.now_s)

    async def messages(self, session_id: str, owner: str = "ann") -> tuple[bytes, ...] | None:
        """The messages of a session, None when it is not there. Counts as a use."""
        session = await self.store.load(session_id, owner, self.now_s)
        return None if session is None else session.messages

    async def ids(self) -> list[str]:
        """All sessions, most recently used first."""
        return [meta.id for meta in await self.store.listed(1000)]

    async def until_count(self, expected: int, deadline_s: float = 10.0) -> None:
        """Lets time pass until that many sessions are left."""
        async with asyncio.timeout(deadline_s):
            while await self.store.count() != expected:
                await self.pause()

    async def pause(self) -> None:
        """A little time passes, much less than any time to live."""
        self.tick(self)
        await asyncio.sleep(POLL_S)


class Kind(Protocol):
    """One implementation."""

    def __call__(self, limits: StoreLimits = ROOMY) -> AbstractAsyncContextManager[Bench]:
        """Opens an empty store."""
        ...


@asynccontextmanager
async def memory(limits: StoreLimits = ROOMY) -> AsyncIterator[Bench]:
    """In this process; its time is the test's."""
    evicted: list[str] = []
    store = MemoryStore(limits, evicted.append)

    def tick(bench: Bench) -> None:
        bench.now_s += POLL_S
        store.purge(bench.now_s)

    yield Bench(store, tick, evicted)


@dataclass(frozen=True, slots=True)
class RedisKind:
    """On a server; its time is the server's, so ``Bench.now_s`` stands still."""

    server: ValkeyServer
    key: Secret | None = None

    @asynccontextmanager
    async def __call__(self, limits: StoreLimits = ROOMY, timeout_s: float = 5.0) -> AsyncIterator[Bench]:
        """A store under a prefix of its own. The deadline is long unless a test is about it."""
        evicted: list[str] = []
        store = self.store(limits, evicted.append, prefix=secrets.token_hex(8), timeout_s=timeout_s)
        yield Bench(store, lambda bench: None, evicted)
        await store.close()

    def store(
        self, limits: StoreLimits, evicted: Callable[[str], None], *, prefix: str, timeout_s: float = 5.0
    ) -> RedisStore:
        """A store that the caller closes."""
        return RedisStore(self.server.url, limits, evicted, key=self.key, timeout_s=timeout_s, prefix=prefix)
