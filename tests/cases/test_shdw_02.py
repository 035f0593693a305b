"""SHDW-02: the mirrored request was shaped for the primary, and its usage was billed a second time."""

from dataclasses import replace

import orjson

from router_ext.config.sections import Budget, QualityGate
from router_ext.model.gate import Checks
from tests.fakes.domain import head
from tests.fakes.session_turns import CREATE, continues, messages_of, said, with_sessions
from tests.unit.engine.gated import error, says
from tests.unit.engine.shadowed import ShadowRig, shadowed, shadowing

SHOP = {"x-kronaxis-service": "shop"}


def _rig() -> ShadowRig:
    """A budget of one dollar, pins and the quality gate."""
    config = with_sessions(shadowing())
    server = replace(config.server, kv_pinning=replace(config.server.kv_pinning, enabled=True))
    gate = QualityGate(enabled=True, fallback_backend="b", checks=Checks(min_length=1))
    return ShadowRig(replace(config, server=server, budgets=(Budget("shop", 1.0),), quality_gate=gate))


async def test_the_shadow_has_a_name_a_key_and_an_account_of_its_own() -> None:
    """And leaves session, pairs, times to the first token and breakers as they are."""
    rig = _rig()
    rig.dispatcher.answer("a", says("from A"), says("from A again"))
    rig.dispatcher.answer("b", says("from B"), error(500))
    told = await shadowed(rig, head_=head(headers={**CREATE, **SHOP}, authorization="Bearer client"))
    session_id = told.headers["x-kronaxis-session-id"]
    await shadowed(rig, said("more"), head(headers={**continues(session_id), **SHOP}, authorization="Bearer client"))

    to_b = [call for call in rig.dispatcher.calls if call.backend.name == "b"]
    assert [orjson.loads(call.body)["model"] for call in to_b] == ["m-b", "m-b"]
    assert [dict(call.headers)["authorization"] for call in to_b] == ["Bearer key-b", "Bearer key-b"]
    assert not any(name.startswith("x-kronaxis-") for call in to_b for name, _ in call.headers)

    contents = [orjson.loads(message)["content"] for message in messages_of(rig, session_id)]
    assert contents == ["hi", "from A", "more", "from A again"]
    assert rig.engine.spend.spent("shop", rig.clock.wall()) == 200
    assert [kind for *_, kind, _ in rig.telemetry.charges] == ["proxied", "shadow", "proxied"]
    assert (rig.pairs.rescues, {backend for backend, _ in rig.telemetry.pins}) == ([], {"a"})
    a, b = rig.engine.pool["a"].state, rig.engine.pool["b"].state
    assert (a.tripped, b.tripped, a.ttft.samples, b.ttft.samples) == (False, False, 2, 0)
    assert rig.results == ["compared", "failed"]
