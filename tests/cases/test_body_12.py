"""BODY-12: deep nesting must be a client's error, not a crash."""

import pytest

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig


def _body(depth: int) -> bytes:
    return b'{"x":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize("depth", [1024, 1100, 5000, 30_000, 200_000])
def test_too_deep_a_body_is_refused_and_the_next_request_works(depth: int) -> None:
    """The object around the arrays is one of the 1,024 levels."""
    rig = EngineRig(router(backend()))
    status, error = rig.refuse(_body(depth))
    assert (status, error["message"]) == (400, "The body is nested deeper than 1024 levels.")
    assert rig.forward().metadata["backend"] == "a"


@pytest.mark.parametrize("depth", [900, 1023])
def test_a_body_within_the_limit_is_routed_and_changed(depth: int) -> None:
    """Whatever the recursion limit of the interpreter."""
    plan = EngineRig(router(backend())).forward(_body(depth))
    assert plan.body == b'{"model":"m-a",' + _body(depth)[1:]
