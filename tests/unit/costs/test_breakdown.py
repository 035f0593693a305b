"""Costs as the API says them."""

import json

from router_ext.costs.breakdown import breakdown
from router_ext.costs.days import Dates, Period
from router_ext.model.ledger import MAX_COUNT
from tests.fakes.ledger import TODAY, key, row


def test_dollars_are_exact_to_the_micro_dollar() -> None:
    """Sums are made of whole micro-dollars, also of the largest."""
    rows = [row(key("a"), 1, 100_000), row(key("b"), 1, 200_000), row(key("c"), 1, 1)]
    assert breakdown(Period.TODAY, Dates(TODAY, TODAY), rows)["total_usd"] == 0.300001
    most = breakdown(Period.TODAY, Dates(TODAY, TODAY), [row(key(), 1, MAX_COUNT)])
    assert json.loads(json.dumps(most))["total_usd"] == 9_007_199_254.740992


def test_rows_are_in_the_order_of_their_keys_however_they_come() -> None:
    """Names too."""
    rows = [row(key("b", "y")), row(key("a", "z"))]
    told = json.loads(json.dumps(breakdown(Period.TODAY, Dates(TODAY, TODAY), rows)))
    assert [shown["service"] for shown in told["rows"]] == ["a", "b"]
    assert (list(told["by_service"]), list(told["by_backend"])) == (["a", "b"], ["y", "z"])
