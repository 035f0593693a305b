"""SSE-15: 20,000 ordinary chunks must be cheap and silent."""

import time

from router_ext.stream.sse import SseReader, holds_token
from tests.fakes.domain import backend, record, router
from tests.fakes.recorder import RecorderRig
from tests.fakes.rig import EngineRig

CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}\n\n'


def test_reading_20000_chunks_takes_less_than_a_second() -> None:
    """Even when every one of them is looked at; an exchange stops at its first token."""
    reader = SseReader()
    started = time.process_time()
    seen = sum(holds_token(data) for _ in range(20_000) for data in reader.feed(CHUNK))
    assert seen == 20_000
    assert time.process_time() - started < 1


def test_an_exchange_is_one_line_however_long_its_answer_is() -> None:
    """Whatever its chunks held."""
    rig, log = EngineRig(router(backend())), RecorderRig()
    rig.forward()
    rig.engine.settle(record("t-1", usage=None))
    end = rig.telemetry.ends[0]
    log.recorder.settled(end.decision, end.outcome)
    assert [line["event"] for line in log.lines()] == ["exchange"]
