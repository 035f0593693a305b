"""MET-04: the count of requests in flight must return to zero, whenever a client leaves."""

from router_ext.stream.events import Event, RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig, ExchangeRun

MESSAGES: list[Event] = [
    RequestHeaders(head(), False),
    RequestBody(BODY, True),
    ResponseHeaders(200, "text/event-stream", False),
    ResponseBody(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n', False),
]


def test_a_client_may_leave_after_any_message() -> None:
    """Before the body nothing is counted; after it the access log entry ends the exchange, once."""
    rig = EngineRig(router(backend(room=1000)))
    runs = [ExchangeRun(rig) for _ in range(200)]
    for number, run in enumerate(runs):
        run.feed(*MESSAGES[: 1 + number % 4])
    assert rig.in_flight() == {"a": 150}
    for run in runs:
        rig.engine.settle(record(run.decision_id, 0, flags=("DC",), upstream_reached=False))
    assert rig.in_flight() == {"a": 0}
    assert len(rig.telemetry.ends) == 150


def test_an_exchange_whose_entry_never_comes_is_given_up() -> None:
    """Envoy's own count of open requests says that it is gone."""
    rig = EngineRig(router(backend(room=1000)))
    for _ in range(200):
        rig.forward()
    for _ in range(5):
        rig.clock.advance(1)
        rig.engine.reconcile({"backend-a": 0})
    assert rig.in_flight() == {"a": 0}
    assert len(rig.telemetry.losses) == 200
