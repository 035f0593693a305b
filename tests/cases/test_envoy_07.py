"""ENVOY-07: a body whose first chunk got lost must not be sent on."""

import pytest

from router_ext.stream.effects import ImmediateReply, Leave
from router_ext.stream.events import BodyMode, Modes, RequestBody, RequestHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig, ExchangeRun


@pytest.mark.parametrize("lost", [1, 10, len(BODY)])
def test_a_body_without_its_beginning_is_refused(lost: int) -> None:
    """With 400: what is left is no JSON object."""
    modes = Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX)
    rig = EngineRig(router(backend()))
    run = ExchangeRun(rig)
    assert run.feed(RequestHeaders(head(), False, modes)) == []
    answer, leave = run.feed(RequestBody(BODY[lost:], True))
    assert isinstance(answer, ImmediateReply)
    assert answer.answer.status == 400
    assert leave == Leave()
    assert rig.in_flight() == {"a": 0}
