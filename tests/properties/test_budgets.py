"""Calls that begin and end in any order: what is reserved is what the open ones may cost, and the limit holds."""

from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router_ext.config.sections import Budget
from router_ext.engine.budgets import ADMITTED, Budgets, Reservation
from router_ext.engine.spend import OTHER, Spend
from router_ext.model.decision import Decision
from router_ext.model.request import Caller, InferenceRequest
from tests.fakes.clock import FakeClock
from tests.fakes.domain import CHAT, backend
from tests.fakes.telemetry import RecordingTelemetry

LIMIT = 1000
MOST = 300
"""What one call may cost."""


class Reserved(RuleBasedStateMachine):
    """The model keeps the open calls of each service that is counted. Every call costs no more than was reserved."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.spend = Spend("me", ZoneInfo("UTC"))
        self.budgets = Budgets(self.spend, RecordingTelemetry(), self.clock)
        self.open: list[Reservation] = []
        self.configure(LIMIT)

    def configure(self, limit: int) -> None:
        """``shop`` is named, and there is a limit for all others."""
        limits = Budget("shop", limit / 1_000_000), Budget("default", limit / 1_000_000)
        self.budgets.configure(limits, frozenset({"shop"}), ZoneInfo("UTC"))

    @rule(service=st.sampled_from(["shop", "cart", ""]), tokens=st.integers(0, MOST))
    def begin(self, service: str, tokens: int) -> None:
        """A call, if it is admitted."""
        if self.budgets.admit(service) != ADMITTED:
            return
        asked = InferenceRequest(CHAT, Caller(service), max_output_tokens=tokens)
        reservation = self.budgets.reserve(Decision("t", 0.0, asked, "r", "a", "m", ()), backend(cost=1.0))
        assert reservation is not None
        self.open.append(reservation)

    @rule(data=st.data(), part=st.floats(0, 1))
    def end(self, data: st.DataObject, part: float) -> None:
        """Any of the open ones, which cost some part of what it might."""
        if self.open:
            reservation = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
            self.spend.add(reservation.service, int(reservation.micro_usd * part), self.clock.wall())
            self.budgets.give_back(reservation)

    @rule()
    def configure_anew(self) -> None:
        """The same budgets; what is open stays so."""
        self.configure(LIMIT)

    @invariant()
    def what_is_reserved_is_the_sum_of_the_open_calls(self) -> None:
        """By service."""
        for service in ("shop", OTHER):
            mine = [reservation.micro_usd for reservation in self.open if reservation.service == service]
            assert self.budgets.reserved(service) == sum(mine)

    @invariant()
    def no_limit_is_passed_by_more_than_one_call(self) -> None:
        """Even if all that are open cost what they may."""
        for service in ("shop", OTHER):
            worst = self.spend.spent(service, self.clock.wall()) + self.budgets.reserved(service)
            assert worst < LIMIT + MOST


Reserved.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestReserved = Reserved.TestCase
