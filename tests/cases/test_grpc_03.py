"""GRPC-03: streams that the client cancels must leave nothing behind."""

import asyncio
import gc
from typing import Final

import psutil

from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import entry_of, send_access_log
from tests.fakes.wire_http import Request
from tests.fakes.wire_messages import Mode, ProcessingModes
from tests.fakes.wire_stand import Stand, unix_stand

REQUEST: Final = Request((b'{"model":"m","prompt":"' + b"x" * 50_000, b'x"}'))
DUPLEX: Final = ProcessingModes(Mode.FULL_DUPLEX_STREAMED, Mode.STREAMED)
ROOM: Final = 16 << 20
"""How much the process may grow over 300 streams: a body that stays behind in each would be 15 MB and more."""


async def cancelled_streams(stand: Stand, number: int) -> None:
    """Streams whose client leaves in mid-body, and some whose client leaves after the decision, settled by the log."""
    for _ in range(number // 20):
        in_body = [stand.envoy(DUPLEX).exchange(REQUEST, act=Act(gone_after_message=2)) for _ in range(10)]
        decided = [stand.envoy().exchange(REQUEST, act=Act(gone_after_reply=2)) for _ in range(10)]
        played = await asyncio.gather(*in_body, *decided)
        assert all(outcome.gone for outcome in played)
        await send_access_log(stand.channel, [entry_of(outcome) for outcome in played])
    await stand.quiet()


def test_cancelled_streams_leave_no_task_no_exchange_and_no_memory() -> None:
    """Tasks and open exchanges return to nothing, and resident memory stays flat once it is warm."""
    with unix_stand() as stand:
        stand.run(cancelled_streams(stand, 100))
        gc.collect()
        warm = psutil.Process().memory_info().rss
        stand.run(cancelled_streams(stand, 300))
        gc.collect()
        assert psutil.Process().memory_info().rss - warm < ROOM
        assert (len(stand.engine.exchanges), stand.in_flight) == (0, 0)
        assert stand.kept.faults == []
