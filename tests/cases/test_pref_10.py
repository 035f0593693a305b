"""PREF-10: a request that fails over must reach the next backend as it is, with nothing added."""

from dataclasses import replace

import orjson

from router_ext.config.sections import KvPinning, Server
from router_ext.model.backend import Backend
from router_ext.stream.events import RequestBody, RequestHeaders, ResponseHeaders
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig, ExchangeRun

PERSONA = "Si Zuzana, predavačka v kníhkupectve. Odpovedaj vždy po slovensky, stručne a milo. " * 40
BODY = (
    '{ "model": "m-a",  "messages":[{"role":"system","content":"' + PERSONA + '"},'
    ' {"role":"user","content":"Máte niečo od Hrabala?"}], "stream":true, "seed":1.50 }'
).encode()
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


def _failed_over(first: Backend, second: Backend) -> EngineRig:
    """A request whose first backend answered 503 before any token."""
    config = replace(router(first, second), server=Server(kv_pinning=KvPinning(enabled=True)))
    rig = EngineRig(config)
    rig.dispatcher.answer("b", event_stream(TOKEN, DONE))
    run = ExchangeRun(rig)
    run.feed(RequestHeaders(head(), False), RequestBody(BODY, True), ResponseHeaders(503, "text/plain", False))
    rig.engine.settle(record(run.decision_id, 503))
    assert rig.telemetry.moves == [("a", "b", "upstream_5xx")]
    return rig


def test_a_backend_of_the_same_model_gets_the_same_bytes() -> None:
    """White space, number forms and the persona's letters included."""
    (call,) = _failed_over(backend("a"), backend("b", model="m-a")).dispatcher.calls
    assert call.body == BODY


def test_a_backend_of_another_model_gets_its_own_name_and_else_the_same_bytes() -> None:
    """Nothing is written anew around it."""
    (call,) = _failed_over(backend("a"), backend("b", model="m-b")).dispatcher.calls
    assert call.body == BODY.replace(b'"m-a"', b'"m-b"')
    assert orjson.loads(call.body)["messages"] == orjson.loads(BODY)["messages"]


def test_the_prefix_is_the_same_for_both_backends() -> None:
    """The next turn of the conversation is expected in the cache of the backend that answered."""
    rig = _failed_over(backend("a"), backend("b", model="m-a"))
    turn = orjson.loads(BODY)
    turn["messages"] += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "Ďakujem."}]
    edits = dict(rig.forward(orjson.dumps(turn)).response_edits.set)
    assert (edits["x-kronaxis-backend"], edits["x-kronaxis-kv-pin"]) == ("b", "HIT")
