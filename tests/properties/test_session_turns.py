"""Turns of several sessions in any order, well and badly: each session is exactly what was answered well, in order."""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from router_ext.payload.session_request import owner_of
from router_ext.ports import SessionStore
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore
from router_ext.sessions.redis import RedisStore
from router_ext.stream.effects import AskFollow, Followed
from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import (
    CREATE,
    JSON,
    SSE,
    Asked,
    assistant,
    begin,
    body_of,
    continues,
    ends,
    events,
    plain,
    user,
    with_sessions,
)
from tests.fakes.valkey_server import ValkeyServer, valkey_server

LIMITS = StoreLimits(ttl_s=600.0, max_sessions=100, max_bytes=1 << 30)
ERROR = b'\n\ndata: {"error":{"message":"overloaded"}}\n\n'
"""The end of a line that may have begun, and an error."""
OWNER = owner_of({}, "")

pieces_of = st.lists(st.integers(0, 1000), max_size=4)


@dataclass(slots=True)
class OpenTurn:
    """A turn that has not ended. ``session_id`` is "" for one that creates; ``left`` is what its backend has to say."""

    asked: Asked = field(repr=False)
    messages: tuple[bytes, bytes]
    session_id: str
    ending: bool
    stream: bool
    left: deque[bytes]
    headed: bool = False


class Turns(RuleBasedStateMachine):
    """The model keeps the turns that were answered well, for each session that was not destroyed."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = self.opened()
        self.rig = EngineRig(with_sessions(router(backend("a", room=1000))), store=self.store, loop=self.loop)
        self.open: list[OpenTurn] = []
        self.told: dict[str, tuple[bytes, ...]] = {}
        self.destroyed: set[str] = set()
        self.begun = 0
        self.unsaved: list[str] = []

    def opened(self) -> SessionStore:
        """An empty store."""
        return MemoryStore(LIMITS, lambda reason: None)

    def teardown(self) -> None:
        """Ends the loop."""
        self.loop.close()

    # Rules

    @rule(stream=st.booleans(), cuts=pieces_of)
    def create(self, stream: bool, cuts: list[int]) -> None:
        """A first turn."""
        self._begin("", False, stream, cuts)

    @precondition(lambda self: self.told or self.destroyed)
    @rule(data=st.data(), ending=st.booleans(), stream=st.booleans(), cuts=pieces_of)
    def go_on(self, data: st.DataObject, ending: bool, stream: bool, cuts: list[int]) -> None:
        """A later turn, which may end its session; none of one that is gone."""
        session_id = data.draw(st.sampled_from([*self.told, *sorted(self.destroyed)]))
        self._begin(session_id, ending and data.draw(st.booleans()), stream, cuts)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), number=st.integers(1, 6))
    def answer(self, data: st.DataObject, number: int) -> None:
        """A backend says some more, perhaps its last."""
        turn = data.draw(st.sampled_from(self.open))
        self._head(turn)
        for _ in range(number):
            if turn in self.open:
                piece = turn.left.popleft()
                turn.asked.piece(piece, end=not turn.left)
                if not turn.left:
                    self._answered(turn)

    @precondition(lambda self: len(self.open) > 1)
    @rule(data=st.data())
    def answer_at_once(self, data: st.DataObject) -> None:
        """Two backends have said all but their last, which then comes from both."""
        first, second = data.draw(st.permutations(self.open))[:2]
        for turn in (first, second):
            self._head(turn)
            while len(turn.left) > 1:
                turn.asked.piece(turn.left.popleft())
        self.loop.run_until_complete(self._follow_both(first, second))
        self._answered_in_some_order(first, second)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["status", "error", "cut"]))
    def fail(self, data: st.DataObject, how: str) -> None:
        """A backend answers with an error, breaks its stream by one, or breaks off."""
        turn = data.draw(st.sampled_from(self.open))
        if how == "status" and not turn.headed:
            turn.asked.answer_head(400, JSON)
        else:
            self._head(turn)
            finished = b'"stop"' in turn.asked.body
            turn.asked.piece(ERROR if how == "error" else b"", end=how != "error")
            if finished and how != "error":
                return self._answered(turn)  # Nothing but the last event was missing.
            turn.asked.piece(b"data: [DONE]\n\n" if turn.stream and how == "error" else b"", end=True)
        return self._ended(turn, "failed")

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A client does not wait for the end."""
        turn = data.draw(st.sampled_from(self.open))
        self._ended(turn, "client_left", "DC")

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """An operator destroys a session."""
        session_id = data.draw(st.sampled_from([*self.told]))
        assert self.loop.run_until_complete(self.store.delete(session_id))
        self._destroyed(session_id)

    # What must hold

    @invariant()
    def every_session_is_what_was_answered_well(self) -> None:
        """Nothing else, nothing missing, and question and answer take turns."""
        for session_id, expected in self.told.items():
            stored = self._stored(session_id)
            assert stored == expected
            roles = [orjson.loads(message)["role"] for message in stored]
            assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert self.loop.run_until_complete(self.store.count()) == len(self.told)

    @invariant()
    def every_turn_that_is_not_kept_is_told(self) -> None:
        """Once, with its reason."""
        assert self.rig.telemetry.unsaved_turns == self.unsaved

    # The model

    def _begin(self, session_id: str, ending: bool, stream: bool, cuts: list[int]) -> None:
        self.begun += 1
        text = str(self.begun)
        body = body_of(user(text), stream=stream)
        headers = ends(session_id) if ending else continues(session_id) if session_id else CREATE
        asked = begin(self.rig, body, headers)
        if session_id in self.destroyed:
            assert asked.status == 404
            return
        assert asked.sent == body_of(*self.told.get(session_id, ()), user(text), stream=stream)
        left = _pieces(text, cuts) if stream else deque((plain(text),))
        turn = OpenTurn(asked, (user(text), assistant(text)), session_id, ending, stream, left)
        self.open.append(turn)

    def _head(self, turn: OpenTurn) -> None:
        if not turn.headed:
            turn.headed = True
            turn.asked.answer_head(kind=SSE if turn.stream else JSON)

    async def _follow_both(self, *turns: OpenTurn) -> list[Followed]:
        asks = (AskFollow(turn.left[0], end=True, events=turn.stream) for turn in turns)
        following = (
            self.rig.engine.follow(turn.asked.run.decision_id, ask) for turn, ask in zip(turns, asks, strict=True)
        )
        return await asyncio.gather(*following)

    def _answered_in_some_order(self, first: OpenTurn, second: OpenTurn) -> None:
        """A store may take the later one first; turns of one session tell which, by what is stored."""
        session_id = first.session_id
        if session_id and session_id == second.session_id and session_id in self.told:
            stored = self._stored(session_id)
            if stored is None:
                # One of them ended the session; the other was lost if it came behind.
                lost = len(self.rig.telemetry.unsaved_turns) > len(self.unsaved)
                first, second = sorted((first, second), key=lambda turn: turn.ending is not lost)
            elif stored == (*self.told[session_id], *second.messages, *first.messages):
                first, second = second, first
        self._answered(first)
        self._answered(second)

    def _answered(self, turn: OpenTurn) -> None:
        turn.asked.settle()
        self.open.remove(turn)
        if not turn.session_id:
            self.told[turn.asked.session_id] = turn.messages
        elif turn.session_id not in self.told:
            self.unsaved.append("gone")
        elif turn.ending:
            self._destroyed(turn.session_id)
        else:
            self.told[turn.session_id] += turn.messages

    def _ended(self, turn: OpenTurn, reason: str, *flags: str) -> None:
        self.open.remove(turn)
        turn.asked.settle(flags=flags)
        self.unsaved.append(reason)

    def _destroyed(self, session_id: str) -> None:
        del self.told[session_id]
        self.destroyed.add(session_id)

    def _stored(self, session_id: str) -> tuple[bytes, ...] | None:
        session = self.loop.run_until_complete(self.store.load(session_id, OWNER, self.rig.clock.wall()))
        return None if session is None else session.messages


def _pieces(text: str, cuts: list[int]) -> deque[bytes]:
    """A streamed answer, cut anywhere before its last event."""
    stream = b"".join(events(text))
    points = sorted({cut % (len(stream) - 14) for cut in cuts})
    return deque(stream[a:b] for a, b in zip([0, *points], [*points, len(stream)], strict=True))


class OnServer(Turns):
    """The same in Redis or Valkey."""

    server: ClassVar[ValkeyServer]

    def opened(self) -> SessionStore:
        """Under a prefix of its own."""
        return RedisStore(self.server.url, LIMITS, lambda reason: None, timeout_s=5.0, prefix=secrets.token_hex(8))

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


Turns.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTurns = Turns.TestCase


def test_turns_on_a_server(server: ValkeyServer) -> None:
    """Fewer examples, for the round trips."""
    machine = type("OnThisServer", (OnServer,), {"server": server})
    run_state_machine_as_test(machine, settings=settings(max_examples=10, stateful_step_count=20, deadline=None))
