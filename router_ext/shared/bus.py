"""Events between routers through Redis or Valkey publish/subscribe.

Nothing waits for it and nothing depends on it: a server that is away costs events, no request. There is no history:
what others saw before a router came, or while the server was away, it learns by itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from router_ext.model.secret import Secret
from router_ext.model.shared import SharedEvent
from router_ext.ports import Telemetry
from router_ext.shared import wire

MAX_WAITING: Final = 1024
"""Events that wait to be sent; the oldest make room. One takes about 3 KB when its prompt is long."""

BATCH: Final = 64
"""Events sent in one round trip."""

HEARTBEAT_S: Final = 1.0
"""Without an event for so long a router sends a message that it expects to get back: the way is open both ways."""

SILENCE_S: Final = 4.0
"""A subscription that brings nothing for so long, not even the own messages, is dead."""

FIRST_DELAY_S: Final = 0.1
MAX_DELAY_S: Final = 2.0
"""Rests before a new connection: doubled with each failure in a row, for ever."""

UNREADABLE: Final = "unreadable"
"""The kind of a message that is none."""

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
        _client(url)  # Not used: it shows what is wrong with the URL.

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
        async with _client(self._url) as client, client.pubsub() as subscription:
            async with asyncio.timeout(self._timeout_s):
                await subscription.subscribe(self.channel)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(subscription, apply), name="shared-receive")
                group.create_task(self._send(client), name="shared-send")

    async def _send(self, client: Redis) -> None:
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), HEARTBEAT_S)
            except TimeoutError:
                await self._send_messages(client, [wire.encode(self._sender, None)])
            self._wake.clear()
            while self._waiting:
                await self._send_batch(client)

    async def _send_batch(self, client: Redis) -> None:
        events = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        try:
            await self._send_messages(client, [wire.encode(self._sender, event) for event in events])
        except _AWAY:
            self._give_up(len(events))
            raise
        for event in events:
            self._telemetry.shared_published(wire.kind(event))

    async def _send_messages(self, client: Redis, messages: list[bytes]) -> None:
        async with asyncio.timeout(self._timeout_s), client.pipeline(transaction=False) as pipeline:
            for message in messages:
                pipeline.publish(self.channel, message)
            await pipeline.execute()

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
        elif message.sender != self._sender and message.event is not None:
            self._telemetry.shared_received(wire.kind(message.event))
            apply(message.event)

    def _give_up(self, count: int) -> None:
        if count:
            self._telemetry.shared_dropped(count)

    def _tell_connected(self, connected: bool, cause: str) -> None:
        """Tells of changes, and of a first attempt that failed."""
        if connected is not self._connected:
            self._connected = connected
            self._telemetry.shared_connected(connected, cause)


def _client(url: Secret) -> Redis:
    """Connections are made when they are needed: one subscribes, one sends."""
    try:
        pool = ConnectionPool.from_url(
            url.reveal(),
            max_connections=2,
            protocol=2,
            driver_info=None,
            # The deadlines of the calls are the only ones.
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )
        pool.connection_class(**pool.connection_kwargs)  # Not used: it shows options that do not exist.
    except (TypeError, ValueError):
        # Not the cause: it may quote a part of the password.
        raise ValueError(f"the URL of the shared state ({url.source}) is not valid") from None
    return Redis.from_pool(pool)
