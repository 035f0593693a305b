"""What shadows cost, in the file."""

from datetime import date
from pathlib import Path

import pytest

from router_ext.costs.days import Dates
from router_ext.ledger.sqlite import SqliteLedger
from router_ext.model.ledger import Key
from router_ext.model.money import PROXIED, SHADOW
from router_ext.model.outcome import Usage

TODAY = date(2026, 12, 2)


@pytest.mark.parametrize(("kind", "told"), [(PROXIED, [(("shop", 7),)]), (SHADOW, [])])
def test_a_shadow_is_in_the_rows_and_not_in_what_budgets_learn_of_after_a_restart(
    tmp_path: Path, kind: str, told: list[object]
) -> None:
    """As it was in no budget before."""
    path = tmp_path / "ledger.db"
    before = SqliteLedger(path, router="r-1", today=TODAY)
    before.book(Key(TODAY, "shop", "b", "m-b", kind), Usage(1, 1), 7, estimated=False)
    before.close()
    after = SqliteLedger(path, router="r-2", today=TODAY)
    assert [row.micro_usd for row in after.rows(Dates(TODAY, TODAY))] == [7]
    assert [item.totals for item in after.told(TODAY)] == told
    after.close()
