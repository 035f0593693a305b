"""Requests that begin and end while configurations come and go, in any order."""

from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router_ext.engine.attempts import AttemptEnd, Attempts
from router_ext.engine.budgets import Budgets
from router_ext.engine.caches import Caches
from router_ext.engine.charging import Charges
from router_ext.engine.exchanges import OpenExchange, OpenExchanges
from router_ext.engine.pool import Pool, Slot
from router_ext.engine.replication import Replication
from router_ext.engine.spend import Spend
from router_ext.model.backend import Endpoint
from router_ext.model.decision import Decision
from router_ext.ports import ALONE
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend, request
from tests.fakes.telemetry import RecordingTelemetry

NAMES = ("a", "b")


class InFlight(RuleBasedStateMachine):
    """The model keeps, for each open exchange, the slot that counted it."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.exchanges = Pool(), OpenExchanges()
        caches, telemetry, clock = Caches(), RecordingTelemetry(), FakeClock()
        spend = Spend("me", ZoneInfo("UTC"))
        replication = Replication(self.pool, caches, telemetry, clock, ALONE, spend=spend)
        self.attempts = Attempts(
            self.pool,
            caches,
            replication,
            telemetry,
            clock,
            charges=Charges(spend, telemetry, clock),
            budgets=Budgets(spend, telemetry, clock),
            released=lambda: None,
        )
        self.open: dict[str, Slot] = {}
        self.ended: list[str] = []
        self.slots: list[Slot] = []
        self.begun = 0

    @rule(names=st.sets(st.sampled_from(NAMES)), port=st.sampled_from([8000, 8001]))
    def configure(self, names: set[str], port: int) -> None:
        """Any subset of the backends, at either port."""
        self.pool.configure([backend(name, endpoint=Endpoint("http", name, port)) for name in sorted(names)])
        self.slots += [slot for slot in self.pool.slots().values() if slot not in self.slots]

    @rule(name=st.sampled_from(NAMES))
    def begin(self, name: str) -> None:
        """A request on a backend, if it is configured."""
        slot = self.pool.get(name)
        if slot is None:
            return
        self.begun += 1
        decision = Decision(f"t-{self.begun}", 0.0, request(), "r", name, "m", ())
        self.exchanges.begin(OpenExchange(self.attempts.begin(decision), 0.0))
        self.open[decision.id] = slot

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """Any exchange ends: an open one, or once more one that has ended."""
        ids = [*self.open, *self.ended]
        if ids:
            decision_id = data.draw(st.sampled_from(ids))
            ended = self.exchanges.end(decision_id)
            assert (ended is not None) or decision_id not in self.open
            if ended is not None:
                self.attempts.end(ended.attempt, AttemptEnd(200, None))
            self.open.pop(decision_id, None)
            self.ended.append(decision_id)

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 2))
    def give_up(self, name: str, number: int) -> None:
        """The oldest exchanges of a cluster are lost."""
        for exchange in self.exchanges.give_up(f"backend-{name}", number):
            self.attempts.abandon(exchange.attempt)
            del self.open[exchange.id]
            self.ended.append(exchange.id)

    @invariant()
    def every_slot_counts_its_own(self) -> None:
        """Also those of backends that are gone, and as the snapshot shows them."""
        open_slots = [*self.open.values()]
        for slot in self.slots:
            assert slot.state.in_flight == open_slots.count(slot)
        assert {name: slot.state for name, slot in self.pool.slots().items()} == dict(self.pool.snapshot())
        assert len(self.exchanges) == len(self.open)


InFlight.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestInFlight = InFlight.TestCase
