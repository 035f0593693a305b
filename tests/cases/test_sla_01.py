"""SLA-01: the first token is the first output, not the first chunk, and reasoning counts."""

import pytest

from router_ext.stream.events import RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig, ExchangeRun

REASONING = b'{"reasoning":"Hm"}'


def _ttft(*timed: tuple[float, bytes]) -> float | None:
    """The recorded time for deltas that arrive at these seconds after the request."""
    rig = EngineRig(router(backend()))
    run = ExchangeRun(rig)
    started = rig.clock.now_s
    run.feed(RequestHeaders(head(), False), RequestBody(b'{"model":"m-a","stream":true}', True))
    run.feed(ResponseHeaders(200, "text/event-stream", False))
    for at_s, delta in timed:
        rig.clock.advance(started + at_s - rig.clock.now_s)
        run.feed(ResponseBody(b'data: {"choices":[{"index":0,"delta":' + delta + b"}]}\n\n", False))
        exchange = rig.engine.exchanges.get(run.decision_id)
        # After the first token the stream is left: no further chunk comes.
        if exchange is not None and exchange.attempt.first_token_at is not None:
            break
    rig.engine.settle(record(run.decision_id))
    return rig.telemetry.ends[0].ttft_s


@pytest.mark.parametrize("role", [b'{"role":"assistant","content":""}', b'{"role":"assistant","content":null}'])
@pytest.mark.parametrize(
    "token", [REASONING, b'{"reasoning_content":"Hm"}', b'{"content":"7"}', b'{"tool_calls":[{"index":0}]}']
)
def test_the_first_output_stops_the_clock(role: bytes, token: bytes) -> None:
    """Not the role that comes at 0.05 s, nor the answer that comes at 9 s."""
    assert _ttft((0.05, role), (1.2, token), (9.0, b'{"content":"7"}')) == pytest.approx(1.2)


def test_an_answer_without_output_has_no_first_token() -> None:
    """Nothing is recorded for it."""
    assert _ttft((0.05, b'{"role":"assistant","content":""}'), (9.0, b"{}")) is None
