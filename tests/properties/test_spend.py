"""Three routers that spend and tell each other, while messages are lost, repeated, late and out of order."""

from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router_ext.engine.spend import Spend
from router_ext.model.shared import SpendTold

NOON = 1_773_144_000.0
ROUTERS = st.sampled_from(range(3))
SERVICES = ("shop", "cart", "other")


class Spending(RuleBasedStateMachine):
    """The model keeps what was really spent: by each of the three, and by those that were restarted. A message that is
    sent stays on its way for ever: it is delivered to any router any number of times, or never.
    """

    def __init__(self) -> None:
        super().__init__()
        self.routers = [Spend(f"r-{number}", ZoneInfo("UTC")) for number in range(3)]
        self.started = 3
        self.now = 0.0
        self.spent = dict.fromkeys(SERVICES, 0)
        self.on_the_way: list[SpendTold] = []

    @rule(router=ROUTERS, service=st.sampled_from(SERVICES), micro_usd=st.integers(0, 1000))
    def spend(self, router: int, service: str, micro_usd: int) -> None:
        """A call costs something, or nothing."""
        self.routers[router].add(service, micro_usd, NOON)
        self.spent[service] += micro_usd

    @rule(router=ROUTERS, after_s=st.floats(0, 3))
    def tell_what_is_due(self, router: int, after_s: float) -> None:
        """Own changes, or everything, as time goes by."""
        self.now += after_s
        self.on_the_way += self.routers[router].due_events(self.now, NOON)

    @rule(router=ROUTERS)
    def tell_everything(self, router: int) -> None:
        """At any time."""
        self.on_the_way += self.routers[router].events(NOON)

    @rule(router=ROUTERS, data=st.data())
    def deliver(self, router: int, data: st.DataObject) -> None:
        """Any message that was ever sent, to any router, also to its sender."""
        if self.on_the_way:
            self.routers[router].apply(data.draw(st.sampled_from(self.on_the_way)), NOON)

    @rule(router=ROUTERS)
    def restart(self, router: int) -> None:
        """The process ends, after its last totals have reached the next router, and another one takes its place."""
        old, heir = self.routers[router], self.routers[(router + 1) % 3]
        for event in old.events(NOON):
            heir.apply(event, NOON)
        self.routers[router] = Spend(f"r-{self.started}", ZoneInfo("UTC"))
        self.started += 1

    @invariant()
    def nobody_counts_a_dollar_twice(self) -> None:
        """What a router does not know yet is missing; there is never too much."""
        for router in self.routers:
            assert all(router.spent(service, NOON) <= self.spent[service] for service in SERVICES)

    @invariant()
    def once_each_told_everything_all_know_the_sum(self) -> None:
        """Tried out on routers that are as these would be if they told now: the messages stay on their way."""
        told = [event for router in self.routers for event in router.events(NOON)]
        listener = Spend("listener", ZoneInfo("UTC"))
        for event in reversed(told):
            listener.apply(event, NOON)
        assert listener.totals(NOON) == {service: spent for service, spent in self.spent.items() if spent}

    def teardown(self) -> None:
        """At the end each tells the two others everything."""
        for sender in self.routers:
            for event in sender.events(NOON):
                for router in self.routers:
                    router.apply(event, NOON)
        expected = {service: spent for service, spent in self.spent.items() if spent}
        assert [dict(router.totals(NOON)) for router in self.routers] == [expected] * 3


Spending.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestSpending = Spending.TestCase
