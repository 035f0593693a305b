"""ENVOY-05: a decision that needs the body must come before the headers are released."""

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.model.rule import Match, Rule
from router_ext.stream.effects import BodyReply, HeadersReply
from router_ext.stream.events import BodyMode, Modes, RequestBody, RequestHeaders
from tests.fakes.domain import backend, head
from tests.fakes.rig import EngineRig, ExchangeRun

CONFIG = RouterConfig(
    backends=(backend("a"), backend("b", model="m-b")),
    rules=(Rule("b", 1, Match(model="m-b"), ("b",)), Rule("rest", 0, Match(), ("a",))),
)
BODY = RequestBody(b'{"model":"m-b","messages":[]}', True)


@pytest.mark.parametrize(
    "modes",
    [
        Modes(),
        Modes(BodyMode.STREAMED, body_before_headers=True),
        Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX),
    ],
    ids=["buffered", "streamed before headers", "full duplex"],
)
def test_the_model_in_the_body_chooses_the_cluster(modes: Modes) -> None:
    """The first reply that carries a route is given after the body was read."""
    rig = EngineRig(CONFIG)
    run = ExchangeRun(rig)
    before = run.feed(RequestHeaders(head(), False, modes))
    assert all(isinstance(reply, HeadersReply) and not reply.reroute and not reply.edits for reply in before)
    routed = next(reply for reply in run.feed(BODY) if isinstance(reply, HeadersReply | BodyReply) and reply.reroute)
    assert dict(routed.edits.set)["x-kronaxis-cluster"] == "backend-b"
    assert rig.telemetry.blind_decisions == 0


@pytest.mark.parametrize("mode", [BodyMode.STREAMED, BodyMode.NONE])
def test_a_mode_that_cannot_work_is_counted(mode: BodyMode) -> None:
    """The headers must do, so that the decision may be wrong: a metric says so."""
    rig = EngineRig(CONFIG)
    ExchangeRun(rig).feed(RequestHeaders(head(), False, Modes(mode)))
    assert rig.telemetry.blind_decisions == 1
