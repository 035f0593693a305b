"""BODY-09: numbers that the router never meant to touch must keep their text."""

import pytest

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig

REST = (
    b'"seed":36028797018963969,"temperature":0.10000000000000000055,"logit_bias":{"50256":-100},'
    b'"big":1180591620717411303424,"messages":[{"role":"user","content":"hi"}]}'
)


def test_a_new_model_name_leaves_every_number_as_it_was() -> None:
    """Seeds of 54 bits, whole numbers of 70 bits and long fractions."""
    plan = EngineRig(router(backend())).forward(b'{"model":"x",' + REST)
    assert plan.body == b'{"model":"m-a",' + REST


def test_a_body_whose_model_is_right_is_not_touched() -> None:
    """It goes as it came."""
    assert EngineRig(router(backend())).forward(b'{"model":"m-a",' + REST).body is None


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"9" * 5000, b"1e400"])
def test_numbers_that_json_or_a_double_cannot_hold_are_refused(number: bytes) -> None:
    """400, never a crash and never an Infinity sent on."""
    status, error = EngineRig(router(backend())).refuse(b'{"model":"m-a","x":' + number + b"}")
    assert (status, error["code"]) == (400, "invalid_json")
