"""COST-05: cost was looked up under the alias that the client sent, which has no price, and 0 was charged."""

from dataclasses import replace
from pathlib import Path

from router_ext.costs.days import Dates
from router_ext.ledger.sqlite import SqliteLedger
from router_ext.model.ledger import Row, key_of
from router_ext.model.money import PROXIED, cost_micro_usd
from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from tests.fakes.domain import backend, router
from tests.fakes.ledger import TODAY
from tests.fakes.rig import EngineRig

LARGE = replace(backend("pool-a", model="m-large", aliases=("auto",)), cost_input_1m=10.0, cost_output_1m=30.0)
SMALL = replace(backend("pool-b", model="m-small"), cost_input_1m=1.0, cost_output_1m=3.0)
BODY = b'{"model":"auto","messages":[{"role":"user","content":"hi"}]}'


def _booked(rig: EngineRig, path: Path) -> list[Row]:
    """What a ledger says after the last decision's answer of 1,000 and 100 tokens."""
    decision, usage = rig.engine.recent[-1], Usage(1000, 100)
    served = rig.config.backend(decision.backend)
    ledger = SqliteLedger(path / "ledger.sqlite", router="me", today=TODAY)
    ledger.book(key_of(TODAY, "shop", decision, PROXIED), usage, cost_micro_usd(served, usage), estimated=False)
    rows = ledger.rows(Dates(TODAY, TODAY))
    ledger.close()
    return rows


def test_an_alias_is_priced_and_booked_as_the_model_behind_it(tmp_path: Path) -> None:
    """The decision keeps both names."""
    rig = EngineRig(router(LARGE))
    rig.forward(BODY)
    decision = rig.engine.recent[-1]
    assert (decision.request.model, decision.upstream_model) == ("auto", "m-large")
    rows = _booked(rig, tmp_path)
    assert [(row.key.backend, row.key.model, row.micro_usd) for row in rows] == [("pool-a", "m-large", 13_000)]


def test_another_backend_s_price_counts_when_it_serves_the_alias(tmp_path: Path) -> None:
    """Its own model, however the client calls it: the backend that has the alias is away."""
    rig = EngineRig(router(LARGE, SMALL))
    rig.engine.set_health("pool-a", Health.DOWN)
    rig.forward(BODY)
    assert rig.engine.recent[-1].request.model == "auto"
    rows = _booked(rig, tmp_path)
    assert [(row.key.backend, row.key.model, row.micro_usd) for row in rows] == [("pool-b", "m-small", 1_300)]
