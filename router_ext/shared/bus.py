"""Events between routers through Redis or Valkey publish/subscribe.

Nothing waits for it and nothing depends on it: a server that is away costs events, no request. There is no history:
what others saw before a router came, or while the server was away, it learns by itself.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from router_ext.model.secret import Secret
from router_ext.model.shared import SharedEvent
from router_ext.ports import Telemetry
from router_ext.redis_client import redis_client
from router_ext.shared import wire

MAX_WAITING: Final = 1024
"""Events that wait to be sent; the oldest make room. One takes up to 10 KB, when its prompt is long."""

REST_S: Final = 0.02
"""Least time between two messages: what comes meanwhile shares the next one. A message costs its sender about 0.7 ms of
CPU, one more event in it 10 to 20 µs.
"""

HEARTBEAT_S: Final = 1.0
"""Without an event for so long a router sends a message without one: it expects all of its messages to come back."""

SILENCE_S: Final = 4.0
"""A subscription that brings nothing for so long, not even the own messages, is dead."""

FIRST_DELAY_S: Final = 0.1
MAX_DELAY_S: Final = 2.0
"""Rests before a new connection: doubled with each failure in a row, for ever."""

UNREADABLE: Final = "unreadable"
"""The kind of what is no message, or no event of one."""

_AWAY: Final = (RedisError, OSError, TimeoutError)


class RedisBus:
    """Implements ``ports.SharedState``. Used from one event loop, on which ``run`` has to run for anything to be sent.

    ``url`` is ``redis://``, ``rediss://`` or ``unix://`` with credentials and options as redis-py reads them; the
    channel is ``{prefix}:events``, the same in all databases of a server. ``sender`` differs between processes: own
    messages are ignored. ``timeout_s`` bounds connecting and each sending. Raises ValueError for a bad URL.
    """

    active: Final = True

    def __init__(
        self, url: Secret, telemetry: Telemetry, *, sender: str, timeout_s: float = 0.5, prefix: str = "router_ext"
    ) -> None:
        self.channel: Final = f"{prefix}:events"
        self._telemetry = telemetry
        self._sender = sender
        self._timeout_s = timeout_s
        self._url = url
        self._waiting: deque[SharedEvent] = deque(maxlen=MAX_WAITING)
        self._wake = asyncio.Event()
        self._connected: bool | None = None
        self._client()  # Not used: it shows what is wrong with the URL.

    def _client(self) -> Redis:
        """One connection subscribes, one sends."""
        return redis_client(self._url, "the shared state", max_connections=2)

    def publish(self, event: SharedEvent) -> None:
        """See ``ports.SharedState``. While the server is away the event waits for a moment, then it is dropped."""
        if len(self._waiting) == MAX_WAITING:
            self._give_up(1)
        self._waiting.append(event)
        self._wake.set()

    async def run(self, apply: Callable[[SharedEvent], None]) -> None:
        """Sends what is published and calls ``apply`` with what others send, until it is cancelled."""
        delay_s = FIRST_DELAY_S
        while True:
            cause = "stopped"
            try:
                await self._connect_and_serve(apply)
            except* _AWAY as group:
                cause = type(group.exceptions[0]).__name__
                delay_s = FIRST_DELAY_S if self._connected else min(MAX_DELAY_S, 2 * delay_s)
            finally:
                self._tell_connected(False, cause)
            # What waited for the old connection would be late.
            self._give_up(len(self._waiting))
            self._waiting.clear()
            await asyncio.sleep(delay_s)

    async def _connect_and_serve(self, apply: Callable[[SharedEvent], None]) -> None:
        """Returns by the first failure of either way."""
        async with self._client() as client, client.pubsub() as subscription:
            async with asyncio.timeout(self._timeout_s):
                await subscription.subscribe(self.channel)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(subscription, apply), name="shared-receive")
                group.create_task(self._send(client), name="shared-send")

    async def _send(self, client: Redis) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), HEARTBEAT_S)
            self._wake.clear()
            await self._send_message(client)
            while self._waiting:
                await self._send_message(client)
            await asyncio.sleep(REST_S)

    async def _send_message(self, client: Redis) -> None:
        """Sends the oldest events, none when none waits."""
        events = [self._waiting.popleft() for _ in range(min(wire.MAX_EVENTS, len(self._waiting)))]
        try:
            async with asyncio.timeout(self._timeout_s):
                await client.publish(self.channel, wire.encode(self._sender, events))
        except _AWAY:
            self._give_up(len(events))
            raise
        for event in events:
            self._telemetry.shared_published(wire.kind(event))

    async def _receive(self, subscription: PubSub, apply: Callable[[SharedEvent], None]) -> None:
        while True:
            async with asyncio.timeout(SILENCE_S):
                told = await subscription.get_message(timeout=None)
            if told is not None and told["type"] == "subscribe":
                self._tell_connected(True, "")
            elif told is not None and told["type"] == "message":
                self._take(told["data"], apply)

    def _take(self, data: bytes, apply: Callable[[SharedEvent], None]) -> None:
        message = wire.decode(data)
        if message is None:
            self._telemetry.shared_received(UNREADABLE)
        elif message.sender != self._sender:
            for event in map(wire.decode_event, message.events):
                self._telemetry.shared_received(UNREADABLE if event is None else wire.kind(event))
                if event is not None:
                    apply(event)

    def _give_up(self, count: int) -> None:
        if count:
            self._telemetry.shared_dropped(count)

    def _tell_connected(self, connected: bool, cause: str) -> None:
        """Tells of changes, and of a first attempt that failed."""
        if connected is not self._connected:
            self._connected = connected
            self._telemetry.shared_connected(connected, cause)
