"""Many sessions at once while router_ext is killed and started again: which acknowledged turns are not stored?"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from benchmarks.load import quantile
from benchmarks.sessions.client import PATIENCE_S, Client, Progress, unexpected
from benchmarks.sessions.recall import Acknowledged, Message, Recall, recall
from benchmarks.sessions.stack import setup
from benchmarks.sessions.texts import Writer
from benchmarks.stack import Stack, stack
from router_ext.model.headers import SESSION_CREATE, SESSION_ID
from router_ext.model.secret import Secret
from router_ext.model.session import Session
from router_ext.payload.session_request import owner_of
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.redis import RedisStore
from tests.fakes.valkey_server import valkey_server

SESSIONS: Final = 200
TURNS: Final = 20
AT_ONCE: Final = 50
KILLS: Final = (0.03, 0.25, 0.5, 0.75)
"""After which share of all turns router_ext is killed; first while sessions are created."""

DECODE_TPS: Final = 200
"""An answer takes a tenth of a second, so that a kill finds some half written."""

_LIMITS: Final = StoreLimits(7200, 100_000, 1 << 31)
_SESSIONS: Final = '{{enabled: true, store: redis, redis_url: "{url}", max_sessions: 100000}}'


@dataclass(slots=True)
class Talk:
    """A conversation. ``gave_up``: a turn was never answered, and the conversation ended there."""

    number: int
    session_id: str = ""
    sent: list[str] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    gave_up: bool = False

    @property
    def standing(self) -> dict[str, str]:
        """Headers of every turn. Ten conversations share an owner."""
        return {"authorization": f"Bearer bench-{self.number // 10}", "content-type": "application/json"}

    def headers(self) -> dict[str, str]:
        """Of the next turn: the first creates the session."""
        wish = {SESSION_ID: self.session_id} if self.session_id else {SESSION_CREATE: "true"}
        return {**self.standing, **wish}

    async def say(self, client: Client, text: str) -> None:
        """The next turn; every second one is streamed."""
        if self.gave_up:
            return
        self.sent.append(f"Conversation {self.number}, turn {len(self.sent)}. {text}")
        kept = await client.turn(self.sent[-1], self.headers(), stream=(self.number + len(self.sent)) % 2 == 0)
        if kept is None:
            self.gave_up = True
            return
        self.session_id = kept.session_id
        self.acknowledged.append(Acknowledged(self.sent[-1], kept.text))


async def _talk(client: Client, talks: Sequence[Talk], writer: Writer) -> None:
    """One person with several conversations: a turn of each, then the next turn of each."""
    for _ in range(TURNS):
        for talk in talks:
            await talk.say(client, writer.text(300))


async def measure(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of a run. Lost turns are named by their session."""
    with valkey_server() as server:
        sessions = _SESSIONS.format(url=server.url.reveal())
        async with stack(folder, setup(sessions, DECODE_TPS)) as running:
            talks, progress, wall_s = await _run(running, say)
        recalled, stored = await _recalled(server.url, talks, say)
    waited = sorted(progress.seconds)
    return {
        "acknowledged_turns": recalled.acknowledged,
        "lost_turns": recalled.lost,
        "duplicate_turns": recalled.duplicates,
        "foreign_turns": recalled.foreign,
        "disordered_turns": recalled.disordered,
        "malformed_sessions": recalled.malformed,
        "gave_up": sum(talk.gave_up for talk in talks),
        "unclaimed_sessions": stored - len(talks),
        "failed_tries": dict(progress.tries.most_common()),
        "unexpected_tries": unexpected(progress.tries),
        "turns_per_s": round(recalled.acknowledged / wall_s, 1),
        "turn_p50_s": round(quantile(waited, 0.5), 3),
        "turn_max_s": round(waited[-1], 3),
    }


async def _run(running: Stack, say: Callable[[str], None]) -> tuple[list[Talk], Progress, float]:
    progress, writer = Progress(), Writer()
    talks = [Talk(number) for number in range(SESSIONS)]
    url = f"http://127.0.0.1:{running.port}/v1/chat/completions"
    timeout, connector = aiohttp.ClientTimeout(total=PATIENCE_S), aiohttp.TCPConnector(limit=0)
    started = time.monotonic()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        client = Client(url, http, progress)
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(_kill(running, progress, say))
            async with asyncio.TaskGroup() as talking:
                for first in range(AT_ONCE):
                    talking.create_task(_talk(client, talks[first::AT_ONCE], writer))
            killing.cancel()
    return talks, progress, time.monotonic() - started


async def _kill(running: Stack, progress: Progress, say: Callable[[str], None]) -> None:
    for share in KILLS:
        await progress.reached(int(SESSIONS * TURNS * share))
        say(f"  killed after {progress.acknowledged} turns, with {progress.open_requests} requests open")
        killed = time.monotonic()
        await running.kill_router()
        await running.until_routed()
        say(f"  routed again after {time.monotonic() - killed:.1f} s")


async def _recalled(url: Secret, talks: Sequence[Talk], say: Callable[[str], None]) -> tuple[Recall, int]:
    """What is stored of all conversations, and how many sessions there are."""
    store = RedisStore(url, _LIMITS, sys.exit, timeout_s=10)
    total = Recall()
    for talk in talks:
        session = await store.load(talk.session_id, owner_of(talk.standing, ""), time.time())
        found = recall(messages_of(session), talk.acknowledged, talk.sent)
        if found.lost or found.malformed or found.foreign or found.disordered:
            say(f"  {talk.session_id} {found}")
        total += found
    count = await store.count()
    await store.close()
    return total, count


def messages_of(session: Session | None) -> list[Message]:
    """Role and text of each stored message."""
    read: list[Mapping[str, str]] = [json.loads(message) for message in session.messages] if session else []
    return [(message["role"], message["content"]) for message in read]
