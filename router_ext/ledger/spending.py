"""What a ledger tells of a day's spending, in the words of the shared state."""

from collections.abc import Iterable
from datetime import date

from router_ext.model.ledger import Part
from router_ext.model.money import SHADOW
from router_ext.model.shared import MAX_MICRO_USD, MAX_TOTALS, SpendTold


def spending(day: date, parts: Iterable[Part]) -> list[SpendTold]:
    """What each router spent, under its id, in the order of the names. ``parts`` are of ``day``, each of them once.
    Shadows are not spending.
    """
    totals: dict[str, dict[str, int]] = {}
    for part in parts:
        if part.row.key.kind != SHADOW:
            of_router = totals.setdefault(part.router, {})
            service = part.row.key.service
            of_router[service] = min(MAX_MICRO_USD, of_router.get(service, 0) + part.row.micro_usd)
    return [told for router in sorted(totals) for told in _told(router, day, totals[router])]


def _told(router: str, day: date, totals: dict[str, int]) -> Iterable[SpendTold]:
    counts = sorted(totals.items())
    for first in range(0, len(counts), MAX_TOTALS):
        yield SpendTold(router, day, tuple(counts[first : first + MAX_TOTALS]))
