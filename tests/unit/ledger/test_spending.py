"""A day's spending out of a ledger."""

from router_ext.ledger.spending import spending
from router_ext.model.ledger import Part
from router_ext.model.shared import MAX_MICRO_USD, MAX_TOTALS, SpendTold
from tests.fakes.ledger import TODAY, key, row


def test_spending_is_by_router_and_service() -> None:
    """Over backends, models and kinds but shadows, which no budget sees."""
    parts = [
        Part("two", row(key("shop"), 1, 5)),
        Part("one", row(key("shop"), 1, 10)),
        Part("one", row(key("shop", "b", "m-b", "fallback"), 1, 100)),
        Part("one", row(key("blog"), 1, 7)),
        Part("one", row(key("blog", kind="shadow"), 1, 1000)),
        Part("three", row(key("blog", kind="shadow"), 1, 1000)),
    ]
    assert spending(TODAY, parts) == [
        SpendTold("one", TODAY, (("blog", 7), ("shop", 110))),
        SpendTold("two", TODAY, (("shop", 5),)),
    ]


def test_sums_end_at_the_highest_number() -> None:
    """What is told beyond it nobody would take."""
    parts = [Part("one", row(key(backend=name), 1, MAX_MICRO_USD)) for name in "ab"]
    assert spending(TODAY, parts) == [SpendTold("one", TODAY, (("shop", MAX_MICRO_USD),))]


def test_more_services_than_one_event_takes_are_told_by_several() -> None:
    """The last one is not full."""
    parts = [Part("one", row(key(f"s{number:03}"), 1, 1)) for number in range(MAX_TOTALS + 1)]
    assert [len(told.totals) for told in spending(TODAY, parts)] == [MAX_TOTALS, 1]
