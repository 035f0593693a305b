"""What becomes of the entries of one access log message."""

import asyncio
from collections.abc import AsyncIterator

from envoy.service.accesslog.v3 import als_pb2 as pb

from router_ext.engine.engine import Engine
from router_ext.engine.surroundings import Surroundings
from router_ext.extproc.access_log import AccessLog
from router_ext.ports import NoLedger
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_access_log import Entry


class CountingLedger(NoLedger):
    """Remembers how many ends had been told of at each flush."""

    def __init__(self, telemetry: RecordingTelemetry) -> None:
        self._telemetry = telemetry
        self.told_before: list[int] = []

    def flush(self) -> str:
        """Counts."""
        self.told_before.append(len(self._telemetry.ends))
        return ""


def test_the_entries_of_a_message_are_on_file_at_once_and_told_of_after_that() -> None:
    """One flush for both; nothing is told of before its cost is written."""
    rig = EngineRig(router(backend("a")))
    ledger = CountingLedger(rig.telemetry)
    outside = rig.telemetry, rig.clock, rig.dispatcher, rig.sessions
    rig.engine = Engine(rig.config, *outside, id_prefix="t", around=Surroundings(ledger=ledger))
    rig.heal()
    ids = [rig.forward(BODY, head()).metadata["id"] for _ in range(2)]

    async def message() -> AsyncIterator[pb.StreamAccessLogsMessage]:
        sent = pb.StreamAccessLogsMessage()
        for decision_id in ids:
            entry = Entry({"router_ext": {"id": decision_id}}).message()
            sent.http_logs.log_entry.add().ParseFromString(bytes(entry))
        yield sent

    asyncio.run(AccessLog(rig.engine, rig.telemetry).StreamAccessLogs(message(), None))  # type: ignore[arg-type]
    assert ledger.told_before == [0]
    assert [end.decision.id for end in rig.telemetry.ends] == ids
    assert rig.in_flight() == {"a": 0}
