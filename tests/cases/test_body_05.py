"""BODY-05: a browser's preflight request must pass."""

from router_ext.stream.effects import HeadersReply, Leave
from router_ext.stream.events import RequestHeaders
from tests.fakes.domain import CHAT, backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun

PREFLIGHT = {
    "origin": "https://app.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
    "x-kronaxis-cluster": "evil",
}


def test_options_goes_to_a_backend_without_a_look_at_a_body() -> None:
    """The headers of the product are still removed, and a backend's key is not lent."""
    run = ExchangeRun(EngineRig(router(backend(key="k"))))
    reply, leave = run.feed(RequestHeaders(head(CHAT, "OPTIONS", PREFLIGHT), True))
    assert isinstance(reply, HeadersReply)
    assert reply.edits.set == (("x-kronaxis-cluster", "backend-a"),)
    assert reply.edits.remove == ("x-kronaxis-cluster",)
    assert leave == Leave()
