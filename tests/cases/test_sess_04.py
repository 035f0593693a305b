"""SESS-04: the answer was sent before its turn was saved, and a client that asked at once lost it."""

import asyncio

import pytest

from router_ext.model.session import Turn
from router_ext.stream.effects import AskFollow, Forward
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.session_turns import CREATE, assistant, body_of, continues, events, plain, said, user, with_sessions


class SlowStore(FakeSessionStore):
    """Each write waits until the test lets it go."""

    __slots__ = ("gate", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.waiting = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """Late."""
        await self._wait()
        await FakeSessionStore.create(self, session_id, owner, turn, now_s)

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Late."""
        await self._wait()
        return await FakeSessionStore.append(self, session_id, owner, turn, now_s)

    async def _wait(self) -> None:
        self.waiting.release()
        await self.gate.acquire()


async def _turn(rig: EngineRig, store: SlowStore, text: str, headers: dict[str, str], *, stream: bool) -> bytes:
    """One turn of a client that waits for its whole answer; returns the body that the backend got."""
    body = said(text, stream=stream)
    plan = await rig.engine.plan(head(headers=headers), body)
    assert isinstance(plan, Forward)
    *begun, last = events(text.upper()) if stream else (plain(text.upper()),)
    for piece in begun:
        await rig.engine.follow(plan.metadata["id"], AskFollow(piece, end=False, events=True))
    ask = AskFollow(last, end=not stream, events=stream)
    end = asyncio.create_task(rig.engine.follow(plan.metadata["id"], ask))
    await store.waiting.acquire()
    assert not end.done()
    store.gate.release()
    assert (await end).done
    return plan.body or body


@pytest.mark.parametrize("stream", [False, True])
async def test_the_end_of_an_answer_waits_for_its_turn_to_be_saved(stream: bool) -> None:
    """So the next turn, sent as soon as the answer is whole, brings it, and the one after that brings both."""
    store = SlowStore()
    rig = EngineRig(with_sessions(router(backend("a"))), sessions=store)
    await _turn(rig, store, "one", CREATE, stream=stream)
    (session_id,) = store.sessions
    first = (user("one"), assistant("ONE"))
    sent = await _turn(rig, store, "two", continues(session_id), stream=stream)
    assert sent == body_of(*first, user("two"), stream=stream)
    second = (user("two"), assistant("TWO"))
    sent = await _turn(rig, store, "three", continues(session_id), stream=stream)
    assert sent == body_of(*first, *second, user("three"), stream=stream)
    assert store.sessions[session_id].messages == (*first, *second, user("three"), assistant("THREE"))
