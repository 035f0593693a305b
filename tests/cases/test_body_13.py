"""BODY-13: an explicit null means that the field is absent."""

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig

REST = (
    b'"tools":null,"messages":[{"role":"user","content":"hi"},'
    b'{"role":"assistant","content":"hello","tool_calls":null,"name":null},{"role":"user","content":"more"}]}'
)


def test_nulls_are_accepted_and_sent_on() -> None:
    """They are neither refused nor removed."""
    assert EngineRig(router(backend())).forward(b'{"model":"m-a",' + REST).body is None


def test_a_null_model_is_no_name() -> None:
    """The backend's own name takes its place; the other nulls stay."""
    plan = EngineRig(router(backend())).forward(b'{"model":null,"stream":null,' + REST)
    assert plan.body == b'{"model":"m-a","stream":null,' + REST
    assert not plan.streaming
