"""COST-02: once the gateway forced usage on, clients that did not ask got a chunk without choices, and crashed."""

from dataclasses import replace

import pytest

from router_ext.config.sections import Server, UsageMode
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig
from tests.unit.engine.gated import STAND_IN
from tests.unit.engine.relays import begun, relayed

LAST = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}\n\n'
DONE = b"data: [DONE]\n\n"
WIRE = LAST + USAGE + DONE
PLAIN = b'{"model":"m-a","stream":true,"messages":[]}'
ASKS = b'{"model":"m-a","stream":true,"stream_options":{"include_usage":true},"messages":[]}'


async def _seen(body: bytes, *pieces: bytes) -> bytes:
    """What the client gets where streams come through the router, whoever asked."""
    made = router(backend("a"))
    watched = replace(made.defaults, first_token_timeout_s=60.0)
    rig = EngineRig(replace(made, defaults=watched, server=Server(usage=UsageMode.EXACT)))
    rig.dispatcher.answer("a", event_stream(*pieces))
    return (await relayed(rig, await begun(rig, body), STAND_IN)).body


@pytest.mark.parametrize("cut", range(1, len(WIRE)))
async def test_a_client_that_did_not_ask_does_not_see_the_chunk(cut: int) -> None:
    """Cut anywhere across messages; the rest is what the engine wrote."""
    assert await _seen(PLAIN, WIRE[:cut], WIRE[cut:]) == LAST + DONE


async def test_a_client_that_asked_gets_it() -> None:
    """Untouched."""
    assert await _seen(ASKS, LAST, USAGE, DONE) == WIRE
