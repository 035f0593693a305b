"""Daily budgets: whose requests are admitted, and what is set aside for them. A token costs a micro-dollar."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from router_ext.config.sections import Budget
from router_ext.engine.budgets import ADMITTED, Admission, Budgets, Downgraded, Rejected, Reservation
from router_ext.engine.spend import OTHER, Spend
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.outcome import Usage
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.shared import SpendTold
from tests.fakes.clock import FakeClock
from tests.fakes.domain import CHAT, backend
from tests.fakes.telemetry import RecordingTelemetry

DOLLAR = 1_000_000


def at(text: str) -> float:
    """Seconds since the epoch at a time of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class Books:
    """Budgets with their spending and a clock of their own."""

    def __init__(self, *budgets: Budget, named: tuple[str, ...] = ("shop",), zone: str = "UTC") -> None:
        self.clock, self.telemetry = FakeClock(wall_s=at("2026-03-10T12:00:00")), RecordingTelemetry()
        self.spend = Spend("me", ZoneInfo(zone))
        self.budgets = Budgets(self.spend, self.telemetry, self.clock)
        self.budgets.configure(budgets, frozenset(named), ZoneInfo(zone))

    def spent(self, micro_usd: int, service: str = "shop") -> None:
        """A call was paid for."""
        self.spend.add(service, micro_usd, self.clock.wall())

    def admit(self, service: str = "shop") -> Admission:
        """What becomes of a request now."""
        return self.budgets.admit(service)

    def reserve(
        self, prompt_bytes: int, most: int, *, service: str = "shop", path: str = CHAT, cost: float = 1.0
    ) -> int:
        """What is set aside for a request; 0 for nothing."""
        made = self.reservation(prompt_bytes, most, service=service, path=path, to=backend(cost=cost))
        return 0 if made is None else made.micro_usd

    def reservation(
        self, prompt_bytes: int, most: int, *, service: str = "shop", path: str = CHAT, to: Backend
    ) -> Reservation | None:
        """The same, to be given back."""
        return self.budgets.reserve(decision(prompt_bytes, most, service, path), to)


def decision(prompt_bytes: int, most: int, service: str = "shop", path: str = CHAT) -> Decision:
    """A decision for a prompt of that size, and an answer of at most so many tokens."""
    asked = InferenceRequest(path, Caller(service), "m-a", prompt_bytes=prompt_bytes, max_output_tokens=most)
    return Decision("t-1", 0.0, asked, "r", "a", "m-a", ())


# Admission


@pytest.mark.parametrize(("spent", "admitted"), [(0, True), (DOLLAR - 1, True), (DOLLAR, False), (DOLLAR + 1, False)])
def test_a_request_is_admitted_while_less_than_the_limit_is_spent(spent: int, admitted: bool) -> None:
    """One micro-dollar left is enough: what the request itself may cost is not looked at."""
    books = Books(Budget("shop", 1.0))
    books.spent(spent)
    assert (books.admit() == ADMITTED) is admitted


@pytest.mark.parametrize(("most", "admitted"), [(199_999, True), (200_000, False)])
def test_what_open_requests_may_cost_counts_as_spent(most: int, admitted: bool) -> None:
    """Until they have ended."""
    books = Books(Budget("shop", 1.0))
    books.spent(800_000)
    reservation = books.reservation(0, most, to=backend(cost=1.0))
    assert (books.admit() == ADMITTED) is admitted
    assert reservation is not None
    books.budgets.give_back(reservation)
    assert books.admit() == ADMITTED


def test_what_other_routers_spent_counts_but_not_what_they_have_open() -> None:
    """They tell the former only."""
    books = Books(Budget("shop", 1.0))
    books.spend.apply(
        SpendTold("another", datetime(2026, 3, 10, tzinfo=UTC).date(), (("shop", DOLLAR),)), books.clock.wall()
    )
    assert books.admit() == Rejected(12 * 3600)


def test_a_downgrade_names_its_target() -> None:
    """Above the limit, and only there."""
    books = Books(Budget("shop", 1.0, "downgrade", "b"))
    assert books.admit() == ADMITTED
    books.spent(DOLLAR)
    assert books.admit() == Downgraded("b")


def test_without_a_budget_everything_is_admitted_and_nothing_is_reserved() -> None:
    """For the service, and by default."""
    books = Books(Budget("cart", 1.0), named=("shop", "cart"))
    books.spent(9 * DOLLAR)
    assert books.admit() == ADMITTED
    assert books.reserve(100, 100) == 0
    assert books.budgets.reserved("shop") == 0


@pytest.mark.parametrize(("limit", "micro_usd"), [(0.000001, 1), (0.0000001, 1), (0.29, 290_000), (1e9, 10**15)])
def test_a_limit_is_the_number_that_is_written(limit: float, micro_usd: int) -> None:
    """0.29 dollars are 290,000 micro-dollars in no binary fraction; less than one is one."""
    books = Books(Budget("shop", limit))
    books.spent(micro_usd - 1)
    assert books.admit() == ADMITTED
    books.spent(1)
    assert isinstance(books.admit(), Rejected)


# Whose budget


def test_services_without_an_entry_fall_under_default_each_by_itself() -> None:
    """``cart`` is named by a rule, ``shop`` has an entry of its own."""
    books = Books(Budget("shop", 5.0), Budget("default", 1.0), named=("shop", "cart"))
    books.spent(DOLLAR, "shop")
    books.spent(DOLLAR, "cart")
    assert [books.admit(service) == ADMITTED for service in ("shop", "cart", "news")] == [True, False, True]


def test_services_that_nobody_names_meet_the_default_limit_together() -> None:
    """They are counted as one, as their spending is."""
    books = Books(Budget("default", 1.0))
    books.reserve(0, DOLLAR // 2, service="news")
    assert books.admit("cart") == ADMITTED
    books.reserve(0, DOLLAR // 2, service="")
    assert [books.admit(service) == ADMITTED for service in ("news", "cart", "", "default")] == [False] * 4
    assert books.admit("shop") == ADMITTED


def test_the_ratio_that_is_spent_is_shown_for_every_service_with_a_limit() -> None:
    """Those without an entry by the default limit; what is reserved is not spent."""
    books = Books(Budget("shop", 2.0), Budget("default", 4.0), named=("shop", "cart"))
    books.spent(DOLLAR)
    books.spent(6 * DOLLAR, OTHER)
    books.reserve(0, DOLLAR)
    assert books.budgets.spent_ratios() == {"cart": 0.0, "other": 1.5, "shop": 0.5}
    assert Books(Budget("shop", 2.0), named=("shop", "cart")).budgets.spent_ratios() == {"shop": 0.0}
    assert Books().budgets.spent_ratios() == {}


# Midnight


@pytest.mark.parametrize(
    ("zone", "midnight"), [("UTC", "2026-03-11T00:00:00"), ("Asia/Kolkata", "2026-03-10T18:30:00")]
)
def test_a_new_day_has_a_new_budget(zone: str, midnight: str) -> None:
    """From midnight of the zone on; until then the seconds to it are told, rounded up."""
    books = Books(Budget("shop", 1.0), zone=zone)
    books.spent(DOLLAR)
    assert books.admit() == Rejected(int(at(midnight) - at("2026-03-10T12:00:00")))
    books.clock.advance(at(midnight) - 0.5 - books.clock.wall())
    assert books.admit() == Rejected(1)
    books.clock.advance(0.5)
    assert books.admit() == ADMITTED


def test_what_is_open_at_midnight_counts_on_the_new_day() -> None:
    """On which it will be paid for."""
    books = Books(Budget("shop", 1.0))
    books.reserve(0, DOLLAR)
    books.clock.advance(12 * 3600)
    assert books.admit() == Rejected(24 * 3600)


# What is reserved


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_a_prompt_is_assumed_to_have_a_token_for_four_bytes(size: int, tokens: int) -> None:
    """Rounded up; the answer's most tokens come on top, each by its own price."""
    books = Books(Budget("shop", 1.0))
    to = replace(backend(), cost_input_1m=2.0, cost_output_1m=5.0)
    reservation = books.reservation(size, 10, to=to)
    assert reservation == Reservation("shop", 2 * tokens + 50)
    assert books.budgets.reserved("shop") == 2 * tokens + 50


def test_a_model_that_counts_more_tokens_is_believed_and_one_that_counts_fewer_is_not() -> None:
    """The reservation is to be an upper bound: two bytes a token, then; with eight it stays at four."""
    books = Books(Budget("shop", 9.0))
    books.budgets.learn(decision(400, 0), Usage(200, 1))
    assert books.reserve(400, 0) == 200
    books = Books(Budget("shop", 9.0))
    books.budgets.learn(decision(400, 0), Usage(50, 1))
    assert books.reserve(400, 0) == 100


def test_a_path_that_is_no_inference_reserves_nothing() -> None:
    """It has no answer of a model."""
    assert Books(Budget("shop", 1.0)).reserve(400, 100, path="/v1/files") == 0


@pytest.mark.parametrize(("price", "told"), [(None, ["a"]), (0.0, []), (1.0, [])])
def test_a_call_without_prices_under_a_budget_is_told(price: float | None, told: list[str]) -> None:
    """A price of 0 is one. Without a budget nobody asks."""
    books = Books(Budget("shop", 1.0))
    books.reservation(4, 4, to=backend(cost=price))
    books.reservation(4, 4, service="news", to=backend(cost=price))
    assert books.telemetry.unpriced_calls == told
