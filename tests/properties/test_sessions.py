"""Sessions that are made, continued and destroyed in any order, well and badly: each stays what it was told."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator
from itertools import chain, permutations
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from router_ext.model.secret import Secret
from router_ext.model.session import Turn
from router_ext.ports import SessionStore, SessionStoreError
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore
from router_ext.sessions.redis import RedisStore
from tests.fakes.valkey_server import ValkeyServer, valkey_server

NOW = 1_700_000_000.0
LIMITS = StoreLimits(ttl_s=600.0, max_sessions=3, max_bytes=4000)

ids = st.sampled_from(["s-1", "s-2", "s-3", "s-4"])
owners = st.sampled_from(["ann", "ann", "ann", "bob"])
messages = st.one_of(st.binary(max_size=20), st.builds(bytes, st.sampled_from([1023, 1024, 3900, 4001])))
turns = st.lists(messages, max_size=4).map(tuple)


class Sessions(RuleBasedStateMachine):
    """The model keeps what succeeded since each session's creation: a session is that as a whole, or it is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.evicted: list[str] = []
        self.store = self.opened()
        self.told: dict[str, tuple[str, tuple[bytes, ...]]] = {}
        self.given_up = 0

    def opened(self) -> SessionStore:
        """An empty store."""
        return MemoryStore(LIMITS, self.evicted.append)

    def teardown(self) -> None:
        """Ends the loop."""
        self.loop.close()

    @rule(session_id=ids, owner=owners, turn=turns)
    def create(self, session_id: str, owner: str, turn: tuple[bytes, ...]) -> None:
        """A new session; refused for an id that is another owner's."""
        known = self.told.get(session_id, (owner, ()))
        try:
            self.loop.run_until_complete(self.store.create(session_id, owner, Turn(turn), NOW))
        except SessionStoreError:
            assert known[0] != owner
        else:
            assert known[0] == owner
            self.told[session_id] = (owner, turn)

    @rule(session_id=ids, owner=owners, added=st.lists(turns, min_size=1, max_size=4))
    def append(self, session_id: str, owner: str, added: list[tuple[bytes, ...]]) -> None:
        """Turns at once, in whatever order they arrive: each is there as a whole, or the session is gone."""
        kept = self.loop.run_until_complete(self._appended(session_id, owner, added))
        if session_id not in self.told or self.told[session_id][0] != owner:
            assert kept == [False] * len(added)
            return
        if session_id in self.left():
            assert all(kept)
            self.told[session_id] = (owner, self._continued(session_id, owner, added))

    @rule(session_id=ids, owner=st.one_of(owners, st.none()))
    def delete(self, session_id: str, owner: str | None) -> None:
        """Destroys a session of that owner only."""
        is_theirs = session_id in self.told and owner in (None, self.told[session_id][0])
        assert self.loop.run_until_complete(self.store.delete(session_id, owner)) == is_theirs
        if is_theirs:
            del self.told[session_id]

    @rule(session_id=ids, owner=owners)
    def load(self, session_id: str, owner: str) -> None:
        """What was told, to its owner; nothing to another."""
        session = self.loop.run_until_complete(self.store.load(session_id, owner, NOW))
        expected = self.told.get(session_id)
        if expected is None or expected[0] != owner:
            assert session is None
        else:
            assert session is not None
            assert session.messages == expected[1]

    def left(self) -> dict[str, int]:
        """The sizes of the sessions that the store says it has."""
        return {meta.id: meta.bytes for meta in self.loop.run_until_complete(self.store.listed(100))}

    @invariant()
    def limits_hold(self) -> None:
        """And each session that went without being destroyed was reported, once."""
        left = self.left()
        gone = self.told.keys() - left.keys()
        for session_id in gone:
            del self.told[session_id]
        self.given_up += len(gone)
        assert left == {name: sum(map(len, told)) for name, (_, told) in self.told.items()}
        assert len(left) <= LIMITS.max_sessions
        assert sum(left.values()) <= LIMITS.max_bytes
        assert len(self.evicted) == self.given_up, Counter(self.evicted)
        assert self.loop.run_until_complete(self.store.count()) == len(left)

    def _continued(self, session_id: str, owner: str, added: list[tuple[bytes, ...]]) -> tuple[bytes, ...]:
        """The session's messages, which must be what was told before and then these turns."""
        session = self.loop.run_until_complete(self.store.load(session_id, owner, NOW))
        assert session is not None
        before = self.told[session_id][1]
        assert session.messages in {(*before, *chain.from_iterable(order)) for order in permutations(added)}
        return session.messages

    async def _appended(self, session_id: str, owner: str, added: list[tuple[bytes, ...]]) -> list[bool]:
        adding = (self.store.append(session_id, owner, Turn(turn), NOW) for turn in added)
        return await asyncio.gather(*adding)


class OnServer(Sessions):
    """The same in Redis or Valkey, sealed."""

    server: ClassVar[ValkeyServer]

    def opened(self) -> SessionStore:
        """Under a prefix of its own."""
        key = Secret("ab" * 32)
        prefix = secrets.token_hex(8)
        return RedisStore(self.server.url, LIMITS, self.evicted.append, key=key, timeout_s=5.0, prefix=prefix)

    def teardown(self) -> None:
        """Closes its connections."""
        assert isinstance(self.store, RedisStore)
        self.loop.run_until_complete(self.store.close())
        super().teardown()


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A running server."""
    with valkey_server() as running:
        yield running


Sessions.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestSessions = Sessions.TestCase


def test_sessions_on_a_server(server: ValkeyServer) -> None:
    """Fewer examples, for the round trips."""
    machine = type("OnThisServer", (OnServer,), {"server": server})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=20, deadline=None))
