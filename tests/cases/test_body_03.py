"""BODY-03: missing, early and broken bodies must get one answer each, never two."""

import pytest

from router_ext.stream.effects import HeadersReply, ImmediateReply, Leave, Side
from router_ext.stream.events import Event, RequestBody, RequestHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun

HEADERS = RequestHeaders(head(), False)

SCENES: dict[str, tuple[list[Event], Event, str]] = {
    "no body although the path needs one": ([], RequestHeaders(head(), True), "invalid_json"),
    "body before headers": ([], RequestBody(b"{}", True), "bad_header"),
    "broken JSON": ([HEADERS], RequestBody(b'{"model":', True), "invalid_json"),
    "empty body": ([HEADERS], RequestBody(b"", True), "invalid_json"),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_clients_mistake_is_one_answer_of_400(name: str) -> None:
    """The stream is left after it, and no request is counted."""
    before, event, code = SCENES[name]
    rig = EngineRig(router(backend()))
    run = ExchangeRun(rig)
    assert run.feed(*before) == [HeadersReply(Side.REQUEST) for _ in before]
    answer, leave = run.feed(event)
    assert isinstance(answer, ImmediateReply)
    assert answer.answer.status == 400
    assert f'"code":"{code}"'.encode() in answer.answer.body
    assert leave == Leave()
    assert rig.in_flight() == {"a": 0}


def test_a_request_that_needs_no_body_is_routed_by_its_headers() -> None:
    """One reply, and the stream is left."""
    run = ExchangeRun(EngineRig(router(backend())))
    reply, leave = run.feed(RequestHeaders(head("/health", "GET"), True))
    assert isinstance(reply, HeadersReply)
    assert dict(reply.edits.set)["x-kronaxis-cluster"] == "backend-a"
    assert leave == Leave()
