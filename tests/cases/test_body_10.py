"""BODY-10: a repeated key must not be read one way here and another way by the engine."""

import pytest

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig

MESSAGES = b'"messages":[{"role":"user","content":"hi"}]'


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"model":"small-cheap",' + MESSAGES + b',"mod\\u0065l":"large-premium"}', "model"),
        (b'{"model":"m-a",' + MESSAGES + b',"stream":false,"stream":true}', "stream"),
        (b'{"model":"m-a",' + MESSAGES + b"," + MESSAGES + b"}", "messages"),
        (b'{"model":"m-a","user":"u1","us\\u0065r":"u2"}', "user"),
    ],
)
def test_a_repeated_routing_field_is_refused(body: bytes, field: str) -> None:
    """Keys are compared after unescaping; equal values are refused too."""
    rig = EngineRig(router(backend()))
    status, error = rig.refuse(body)
    assert (status, error["code"], error["param"]) == (400, "duplicate_field", field)
    assert rig.in_flight() == {"a": 0}
