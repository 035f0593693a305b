"""Counters of money that routers share: what each knows after which messages, and when a day ends."""

from datetime import UTC, date, datetime
from itertools import permutations
from zoneinfo import ZoneInfo

import pytest

from router_ext.engine.caches import Caches
from router_ext.engine.pool import Pool
from router_ext.engine.replication import Replication
from router_ext.engine.spend import MAX_COUNTS, MAX_ROUTERS, OTHER, Spend
from router_ext.model.shared import MAX_MICRO_USD, SpendTold
from router_ext.ports import ALONE
from tests.fakes.clock import FakeClock
from tests.fakes.telemetry import RecordingTelemetry

DAY = date(2026, 3, 10)


def at(text: str) -> float:
    """Seconds since the epoch at a time of UTC, like ``2026-03-10T12:00:00``."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOON = at("2026-03-10T12:00:00")


def spend(router: str = "me", zone: str = "UTC") -> Spend:
    """Counters without any spending."""
    return Spend(router, ZoneInfo(zone))


def told(router: str, *totals: tuple[str, int], day: date = DAY) -> SpendTold:
    """What a router says of another one, or of itself."""
    return SpendTold(router, day, totals)


def tell(sender: Spend, *listeners: Spend, now_wall: float = NOON) -> None:
    """Everything that the sender knows."""
    for event in sender.events(now_wall):
        for listener in listeners:
            listener.apply(event, now_wall)


# Counting


def test_own_spending_adds_up_by_service() -> None:
    """A service that nothing was spent for has 0, and nothing is spent by a call that costs nothing."""
    mine = spend()
    mine.add("shop", 100, NOON)
    mine.add("shop", 20, NOON)
    mine.add(OTHER, 3, NOON)
    mine.add("cart", 0, NOON)
    assert [mine.spent(service, NOON) for service in ("shop", OTHER, "cart")] == [120, 3, 0]
    assert mine.totals(NOON) == {"shop": 120, "other": 3}


def test_totals_do_not_change_afterwards() -> None:
    """A scrape may read them while more is spent."""
    mine = spend()
    mine.add("shop", 1, NOON)
    totals = mine.totals(NOON)
    mine.add("cart", 1, NOON)
    assert totals == {"shop": 1}


def test_a_counter_stays_at_the_highest_amount_that_can_be_told() -> None:
    """Nine billion dollars."""
    mine = spend()
    mine.add("shop", MAX_MICRO_USD - 1, NOON)
    for _ in range(2):
        mine.add("shop", 1, NOON)
        assert mine.spent("shop", NOON) == MAX_MICRO_USD


# Merging


def test_the_spending_of_all_routers_is_the_sum_of_their_totals() -> None:
    """Each one's counter is its own."""
    mine = spend()
    mine.add("shop", 1, NOON)
    mine.apply(told("a", ("shop", 10), ("cart", 5)), NOON)
    mine.apply(told("b", ("shop", 100)), NOON)
    assert mine.totals(NOON) == {"shop": 111, "cart": 5}


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_messages_may_come_in_any_order_and_twice(order: tuple[int, ...]) -> None:
    """The highest total of each counter is what counts."""
    messages = (
        told("a", ("shop", 10)),
        told("a", ("shop", 30), ("cart", 1)),
        told("b", ("shop", 5)),
        told("a", ("shop", 20), ("cart", 2)),
    )
    mine = spend()
    for number in (*order, *order):
        mine.apply(messages[number], NOON)
    assert mine.totals(NOON) == {"shop": 35, "cart": 2}


def test_what_others_say_of_this_router_is_ignored() -> None:
    """It knows best."""
    mine = spend()
    mine.add("shop", 7, NOON)
    mine.apply(told("me", ("shop", 1000), ("cart", 5)), NOON)
    assert mine.totals(NOON) == {"shop": 7}


def test_a_total_that_comes_by_way_of_a_third_router_counts_once() -> None:
    """``c`` hears of ``a`` from both."""
    a, b, c = spend("a"), spend("b"), spend("c")
    a.add("shop", 10, NOON)
    tell(a, b)
    b.add("shop", 1, NOON)
    tell(b, a, c)
    tell(a, c)
    assert [router.spent("shop", NOON) for router in (a, b, c)] == [11, 11, 11]


def test_a_router_that_was_restarted_learns_what_it_spent_before() -> None:
    """It is a new router to the others, which tell it of its predecessor, and of that they say it again."""
    a, b = spend("a-1"), spend("b")
    a.add("shop", 10, NOON)
    tell(a, b)
    b.add("shop", 1, NOON)
    a = spend("a-2")
    a.add("shop", 100, NOON)
    tell(b, a)
    tell(a, b)
    assert a.totals(NOON) == b.totals(NOON) == {"shop": 111}


def test_events_of_other_routers_reach_the_counters_through_replication() -> None:
    """At the time that the wall shows."""
    mine, clock = spend(), FakeClock(wall_s=NOON)
    replication = Replication(Pool(), Caches(), RecordingTelemetry(), clock, ALONE, spend=mine)
    replication.apply(told("a", ("shop", 10)))
    assert mine.totals(NOON) == {"shop": 10}


# Days

MIDNIGHTS = [
    ("UTC", "2026-03-11T00:00:00", "2026-03-12T00:00:00"),
    ("Asia/Kolkata", "2026-03-10T18:30:00", "2026-03-11T18:30:00"),
    ("America/New_York", "2026-03-08T05:00:00", "2026-03-09T04:00:00"),
    ("Australia/Adelaide", "2026-04-04T13:30:00", "2026-04-05T14:30:00"),
]
"""Zone, and the UTC times at which a day begins and ends: of 24, 24, 23 and 25 hours."""


@pytest.mark.parametrize(("zone", "begin", "end"), MIDNIGHTS)
def test_a_day_is_one_of_the_calendar_of_its_zone(zone: str, begin: str, end: str) -> None:
    """From midnight to midnight, by whatever offset and however long; half a second before it is the day before."""
    mine = spend(zone=zone)
    mine.add("shop", 1, at(begin) - 0.5)
    assert mine.totals(at(begin)) == {}
    mine.add("shop", 10, at(begin))
    assert mine.spent("shop", at(end) - 0.5) == 10
    assert mine.spent("shop", at(end)) == 0


@pytest.mark.parametrize(("zone", "begin", "_end"), MIDNIGHTS)
def test_events_name_the_day_of_the_zone(zone: str, begin: str, _end: str) -> None:
    """Whatever day it is in UTC."""
    mine = spend(zone=zone)
    for now_wall in (at(begin) - 0.5, at(begin)):
        mine.add("shop", 1, now_wall)
        (event,) = mine.events(now_wall)
        assert event.day == datetime.fromtimestamp(now_wall, ZoneInfo(zone)).date()


def test_what_others_spent_ends_with_the_day_too() -> None:
    """Nothing of it is told on the next one."""
    mine = spend()
    mine.apply(told("a", ("shop", 10)), NOON)
    assert mine.totals(at("2026-03-10T23:59:59")) == {"shop": 10}
    assert mine.totals(at("2026-03-11T00:00:00")) == {}
    assert mine.events(at("2026-03-11T00:00:00")) == []


@pytest.mark.parametrize(
    ("day", "today", "tomorrow"),
    [(date(2026, 3, 9), 0, 0), (DAY, 5, 0), (date(2026, 3, 11), 0, 5), (date(2026, 3, 12), 0, 0)],
)
def test_only_today_and_tomorrow_are_taken_over(day: date, today: int, tomorrow: int) -> None:
    """A clock that is ahead is at the next day first: that one's spending waits until it has come here."""
    mine = spend()
    mine.apply(told("a", ("shop", 5), day=day), NOON)
    assert mine.spent("shop", NOON) == today
    assert mine.spent("shop", at("2026-03-11T00:00:00")) == tomorrow


def test_a_late_total_of_yesterday_changes_nothing() -> None:
    """It may have been on its way over midnight."""
    mine = spend()
    mine.apply(told("a", ("shop", 5)), at("2026-03-11T00:00:01"))
    assert mine.totals(at("2026-03-11T00:00:01")) == {}


def test_the_first_call_of_a_day_may_be_any() -> None:
    """Hearing, telling and asking find out that it has begun."""
    midnight = at("2026-03-11T00:00:00")
    for due in (False, True):
        mine = spend()
        mine.add("shop", 1, NOON)
        assert (mine.due_events(0.0, midnight) if due else mine.events(midnight)) == []
    mine = spend()
    mine.add("shop", 1, NOON)
    mine.apply(told("a", ("cart", 5), day=date(2026, 3, 11)), midnight)
    assert mine.totals(midnight) == {"cart": 5}


def test_a_clock_that_goes_back_over_midnight_loses_nothing_of_the_new_day() -> None:
    """It waits like that of a router whose clock is ahead."""
    mine, before, after = spend(), at("2026-03-10T23:59:59"), at("2026-03-11T00:00:00")
    mine.add("shop", 5, after)
    assert mine.spent("shop", before) == 0
    assert mine.spent("shop", after) == 5


def test_another_zone_is_in_force_at_once() -> None:
    """Where it is another day there that one counts, and where it is the same nothing changes."""
    mine, evening = spend(), at("2026-03-10T20:00:00")
    mine.add("shop", 5, evening)
    mine.configure(ZoneInfo("Europe/Berlin"))
    assert mine.spent("shop", evening) == 5
    mine.configure(ZoneInfo("Asia/Kolkata"))
    assert mine.spent("shop", evening) == 0
    mine.add("shop", 1, evening)
    assert [event.day for event in mine.events(evening)] == [date(2026, 3, 11)]


# Telling


def test_everything_that_is_known_is_told_own_spending_first() -> None:
    """One event for each router, and none while nothing is known."""
    mine = spend()
    assert mine.events(NOON) == []
    mine.apply(told("a", ("shop", 10), ("cart", 5)), NOON)
    mine.add("shop", 1, NOON)
    assert mine.events(NOON) == [told("me", ("shop", 1)), told("a", ("shop", 10), ("cart", 5))]


@pytest.mark.parametrize(("services", "sizes"), [(1, [1]), (100, [100]), (101, [100, 1]), (200, [100, 100])])
def test_an_event_holds_up_to_a_hundred_services(services: int, sizes: list[int]) -> None:
    """More are several events, which together say all; of the due ones too."""
    mine = spend()
    for number in range(services):
        mine.add(f"s-{number}", number + 1, NOON)
    everything = mine.events(NOON)
    assert [len(event.totals) for event in everything] == sizes
    assert dict(pair for event in everything for pair in event.totals) == dict(mine.totals(NOON))
    assert mine.due_events(0.0, NOON) == everything
    for number in range(services):
        mine.add(f"s-{number}", 1, NOON)
    assert [len(event.totals) for event in mine.due_events(0.5, NOON)] == sizes


def test_own_spending_is_told_when_it_changed_and_everything_each_five_seconds() -> None:
    """The first time tells everything; between two such times a change is told once, with the new total."""
    mine, of_a = spend(), told("a", ("shop", 10))
    mine.apply(of_a, NOON)
    mine.add("shop", 1, NOON)
    mine.add("cart", 2, NOON)
    assert mine.due_events(100.0, NOON) == [told("me", ("shop", 1), ("cart", 2)), of_a]
    assert mine.due_events(100.5, NOON) == []
    mine.add("cart", 3, NOON)
    assert mine.due_events(101.0, NOON) == [told("me", ("cart", 5))]
    assert mine.due_events(104.9, NOON) == []
    mine.add("shop", 1, NOON)
    assert mine.due_events(105.0, NOON) == [told("me", ("shop", 2), ("cart", 5)), of_a]
    assert mine.due_events(105.5, NOON) == []


def test_what_others_told_is_no_change_of_ones_own() -> None:
    """Else two routers would talk all the time."""
    mine = spend()
    assert mine.due_events(100.0, NOON) == []
    mine.apply(told("a", ("shop", 10)), NOON)
    assert mine.due_events(101.0, NOON) == []
    assert mine.due_events(105.0, NOON) == [told("a", ("shop", 10))]


def test_a_change_of_yesterday_is_not_told_today() -> None:
    """Its day is over."""
    mine, midnight = spend(), at("2026-03-11T00:00:00")
    mine.due_events(100.0, NOON)
    mine.add("shop", 1, midnight - 1)
    assert mine.due_events(101.0, midnight) == []


# Bounds


def test_counters_of_so_many_routers_are_kept_and_no_more() -> None:
    """The own ones always, and those that are known go on."""
    mine = spend()
    for number in range(MAX_ROUTERS + 1):
        mine.apply(told(f"r-{number}", ("shop", 1)), NOON)
    assert mine.spent("shop", NOON) == MAX_ROUTERS
    mine.add("shop", 1000, NOON)
    mine.apply(told("r-0", ("shop", 3)), NOON)
    assert mine.spent("shop", NOON) == 1000 + MAX_ROUTERS + 2


def test_a_router_that_spent_nothing_takes_no_place() -> None:
    """Nor does an empty event."""
    mine = spend()
    for number in range(MAX_ROUTERS):
        mine.apply(told(f"r-{number}", ("shop", 0)), NOON)
        mine.apply(told(f"r-{number}"), NOON)
    assert mine.events(NOON) == []
    mine.apply(told("a", ("shop", 1)), NOON)
    assert mine.spent("shop", NOON) == 1


@pytest.mark.parametrize("routers", [1, 64])
def test_so_many_counters_of_others_are_kept_and_no_more(routers: int) -> None:
    """Whoever told them; known ones go on growing, and so do the own ones."""
    mine = spend()
    for number in range(MAX_COUNTS + 1):
        mine.apply(told(f"r-{number % routers}", (f"s-{number}", 1)), NOON)
    totals = mine.totals(NOON)
    assert (len(totals), f"s-{MAX_COUNTS - 1}" in totals, f"s-{MAX_COUNTS}" in totals) == (64_000, True, False)
    mine.apply(told("r-0", (f"s-{MAX_COUNTS + 1}", 1), ("s-0", 9)), NOON)
    mine.add("mine", 5, NOON)
    assert len(mine.totals(NOON)) == 64_001
    assert (mine.spent("s-0", NOON), mine.spent("mine", NOON)) == (9, 5)


def test_the_bounds_are_those_of_a_day() -> None:
    """A full one leaves the next one room."""
    mine, midnight = spend(), at("2026-03-11T00:00:00")
    for day, count in ((DAY, MAX_ROUTERS), (date(2026, 3, 11), 2)):
        for number in range(count):
            mine.apply(told(f"{day}-{number}", ("shop", 1), day=day), NOON)
    assert (mine.spent("shop", NOON), mine.spent("shop", midnight)) == (MAX_ROUTERS, 2)
