"""BODY-16: chunks without end must not fill the memory."""

import pytest

from router_ext.config.sections import RouterConfig, Server
from router_ext.model.rejection import Reason
from router_ext.stream.effects import ImmediateReply, Leave
from router_ext.stream.events import BodyMode, Modes, RequestBody, RequestHeaders
from tests.fakes.domain import backend, head
from tests.fakes.rig import EngineRig, ExchangeRun

MODES = [Modes(BodyMode.STREAMED, body_before_headers=True), Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX)]
CHUNK = RequestBody(b" " * 65_536, False)


@pytest.mark.parametrize("modes", MODES, ids=["streamed", "full duplex"])
def test_collecting_ends_at_the_limit(modes: Modes) -> None:
    """Sixteen chunks of 64 KiB fill 1 MiB; the next byte is answered with 413 and the stream is left."""
    rig = EngineRig(RouterConfig(server=Server(max_body_bytes=1 << 20), backends=(backend(),)))
    run = ExchangeRun(rig, 1 << 20)
    assert run.feed(RequestHeaders(head(), False, modes), *[CHUNK] * 16) == []
    answer, leave = run.feed(RequestBody(b" ", False))
    assert isinstance(answer, ImmediateReply)
    assert answer.answer.status == 413
    assert leave == Leave()
    assert [rejection.reason for _, rejection in rig.telemetry.refusals] == [Reason.BODY_TOO_LARGE]
