"""SHDW-01: large bodies were not mirrored, and only a debug log told."""

import orjson
import pytest

from router_ext.config.sections import Server
from tests.unit.engine.gated import GOOD, says
from tests.unit.engine.shadowed import shadow_rig, shadowed


@pytest.mark.parametrize("size", [10_000, 400_000, 1_048_577, 1_500_000, 3_000_000])
async def test_a_request_of_any_promised_size_reaches_the_shadow(size: int) -> None:
    """Whole, but for the name of the model."""
    content = "x" * (size - len(_body("")))
    body = _body(content)
    rig = shadow_rig(says(GOOD), a=says(GOOD))
    await shadowed(rig, body)
    (to_b,) = (call for call in rig.dispatcher.calls if call.backend.name == "b")
    assert (len(body), len(body) <= Server().max_body_bytes) == (size, True)
    assert to_b.body == body.replace(b'"m-a"', b'"m-b"')
    assert rig.results == ["compared"]


async def test_a_shadow_that_is_skipped_is_counted_with_its_test() -> None:
    """So nobody reads the figures as those of all requests."""
    rig = shadow_rig(a=says(GOOD))
    rig.engine.pool["b"].pause(rig.clock.monotonic() + 1)
    await shadowed(rig)
    report = rig.shadow.report("t")
    assert report is not None
    assert (report["results"]["skipped"], rig.telemetry.shadows) == (1, [("t", "skipped")])


def _body(content: str) -> bytes:
    return orjson.dumps({"model": "m-a", "messages": [{"role": "user", "content": content}]})
