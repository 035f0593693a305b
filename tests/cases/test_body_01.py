"""BODY-01: Envoy may deliver the last chunk of a large body twice."""

import pytest

from router_ext.stream.effects import BodyReply, DuplexBody, Effect, Side
from router_ext.stream.events import BodyMode, Event, Modes, RequestBody, RequestHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun

FIRST = RequestBody(b'{"model":"m-a","mess', False)
LAST = RequestBody(b'ages":[]}', True)
WHOLE = RequestBody(FIRST.data + LAST.data, True)

SCENES: dict[str, tuple[Modes, list[Event], list[Effect]]] = {
    "buffered": (Modes(), [WHOLE], [BodyReply(Side.REQUEST)]),
    "streamed": (Modes(BodyMode.STREAMED, body_before_headers=True), [FIRST, LAST], [BodyReply(Side.REQUEST)]),
    "full duplex": (Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX), [FIRST, LAST], []),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_repeated_last_chunk_gets_its_reply_and_changes_nothing(name: str) -> None:
    """It is neither appended nor routed again; in full-duplex nothing more may be sent on."""
    modes, body, again = SCENES[name]
    rig = EngineRig(router(backend()))
    run = ExchangeRun(rig)
    effects = run.feed(RequestHeaders(head(), False, modes), *body)
    assert run.feed(body[-1]) == again
    assert run.feed(body[-1]) == again
    assert rig.in_flight() == {"a": 1}
    assert len(rig.telemetry.decisions) == 1
    sent = b"".join(effect.data for effect in effects if isinstance(effect, DuplexBody))
    assert sent == (WHOLE.data if name == "full duplex" else b"")
