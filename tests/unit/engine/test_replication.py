"""Two routers over the same backends: what one tells, and what the other makes of it."""

from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

import pytest

from router_ext.config.sections import KvPinning, Server
from router_ext.engine.attempts import Attempts
from router_ext.engine.budgets import Budgets
from router_ext.engine.caches import Caches
from router_ext.engine.charging import Charges
from router_ext.engine.engine import Engine
from router_ext.engine.pool import Pool
from router_ext.engine.replication import Replication
from router_ext.engine.spend import Spend
from router_ext.engine.surroundings import Surroundings
from router_ext.model.backend import Backend, BackendType, CircuitBreaker, Endpoint
from router_ext.model.decision import Decision
from router_ext.model.shared import CircuitChanged, PrefixServed, SharedEvent
from router_ext.model.snapshot import Health
from router_ext.payload.envelope import Envelope, read_envelope
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend, record, request, router
from tests.fakes.rig import EngineRig
from tests.fakes.telemetry import RecordingTelemetry
from tests.unit.engine.test_pinning import DOCUMENT, chat, pinning, send, serve

BREAKER = CircuitBreaker(error_threshold=2, window_s=10.0)
AT_A = "http://a:8000"


@dataclass(slots=True)
class Line:
    """Implements ``ports.SharedState``: keeps what is published."""

    active: bool = True
    events: list[SharedEvent] = field(default_factory=list)

    def publish(self, event: SharedEvent) -> None:
        """Keeps it."""
        self.events.append(event)


@dataclass(slots=True)
class Replica(EngineRig):
    """An engine whose events a test carries to another one."""

    line: Line = field(default_factory=Line)

    def __post_init__(self) -> None:
        outside = self.telemetry, self.clock, self.dispatcher, self.sessions
        around = Surroundings(shared=self.line)
        self.engine = Engine(self.config, *outside, id_prefix="t", draw=self.draw, around=around)
        self.heal()

    def hears(self, other: "Replica") -> None:
        """Everything that the other one has published so far."""
        for event in other.line.events:
            self.engine.apply(event)


def two(*backends: Backend, here: tuple[Backend, ...] = (), pins: bool = True) -> tuple[Replica, Replica]:
    """A router, and another one whose backends are ``here`` where they differ."""
    there = backends or (backend("a"), backend("b", model="m-a"))
    config = pinning(*(here or there))
    if not pins:
        config = replace(config, server=Server(queue_aware_routing=True))
    return Replica(pinning(*there)), Replica(config)


def guarded(name: str = "a", settings: CircuitBreaker | None = BREAKER) -> Backend:
    """A backend with a breaker."""
    return replace(backend(name, model="m-a"), circuit_breaker=settings)


def two_in_order(*here: Backend) -> tuple[Replica, Replica]:
    """Two routers that use their first backend while they can."""
    guarded_pair = guarded(), guarded("b")
    return Replica(router(*guarded_pair)), Replica(router(*(here or guarded_pair)))


def fail(rig: Replica, times: int) -> None:
    """Requests that end in a 500 of the first backend."""
    for _ in range(times):
        plan = rig.forward()
        assert plan.metadata["backend"] == "a"
        rig.engine.settle(record(plan.metadata["id"], 500))


def is_open(rig: Replica) -> bool:
    """The breaker of the first backend."""
    return rig.engine.pool["a"].state.tripped


# Pins


def test_a_conversation_begun_at_one_router_goes_on_at_another_on_the_same_backend() -> None:
    """The other one serves it as a hit, although its idle backend would be as good."""
    for load in ("a", "b"):
        there, here = two()
        there.engine.set_health("b" if load == "a" else "a", Health.DOWN)
        assert serve(there, chat(DOCUMENT)) == (load, "MISS")
        here.hears(there)
        assert serve(here, chat(DOCUMENT, "answer", "more")) == (load, "HIT")


def test_what_is_heard_is_not_told_again() -> None:
    """Else two routers would talk for ever."""
    there, here = two()
    serve(there, chat(DOCUMENT))
    here.hears(there)
    assert here.line.events == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_told_once(stream: bool) -> None:
    """At its first token, or at its end when it shows none."""
    there, _ = two()
    decision_id, name, _ = send(there, chat(DOCUMENT, stream=stream))
    if stream:
        there.engine.first_token(decision_id)
        assert len(there.line.events) == 1
    there.engine.settle(record(decision_id))
    (event,) = there.line.events
    assert isinstance(event, PrefixServed)
    assert (event.backend, event.endpoint, event.model) == (name, f"http://{name}:8000", "m-a")
    assert [size for _, size in event.boundaries] == [2048, 4096, 6144, 8192, 10_240, 12_288, 12_600]


def test_a_failed_request_is_not_told() -> None:
    """Nobody knows what its backend's cache holds."""
    there, _ = two()
    serve(there, chat(DOCUMENT), 503)
    assert there.line.events == []


def test_an_engine_without_a_cache_of_its_own_is_not_told() -> None:
    """It is never a hit."""
    there, _ = two(backend("a", engine=BackendType.OPENAI))
    serve(there, chat(DOCUMENT))
    assert there.line.events == []


def test_nothing_is_put_together_for_nobody() -> None:
    """Without shared state no event of a request is made."""
    there, _ = two()
    there.line.active = False
    serve(there, chat(DOCUMENT))
    assert there.line.events == []


@pytest.mark.parametrize(
    "here",
    [
        backend("c"),
        backend("a", endpoint=Endpoint("http", "a", 8001)),
        backend("a", model="m-b", aliases=("m-a",)),
        backend("a", engine=BackendType.OPENAI),
    ],
    ids=["unknown", "elsewhere", "another model", "no cache"],
)
def test_a_prefix_of_a_backend_that_is_another_one_here_is_ignored(here: Backend) -> None:
    """Its cache never saw that prompt."""
    there, other = two(backend("a"), here=(here,))
    serve(there, chat(DOCUMENT))
    other.hears(there)
    assert len(other.engine.caches) == 0
    assert send(other, chat(DOCUMENT, "answer", "more"))[2] == "MISS"


def test_without_pinning_a_prefix_is_ignored() -> None:
    """The table stays empty."""
    there, here = two(pins=False)
    serve(there, chat(DOCUMENT))
    here.hears(there)
    assert len(here.engine.caches) == 0


def test_a_pin_that_was_told_lives_as_long_as_an_own_one() -> None:
    """Up to ``ttl`` after it was heard of."""
    for age_s, pin in ((1799.0, "HIT"), (1800.0, "MISS")):
        there, here = two(backend("a"))
        serve(there, chat(DOCUMENT))
        here.hears(there)
        here.clock.advance(age_s)
        assert send(here, chat(DOCUMENT, "answer", "more"))[2] == pin


def test_an_answer_of_a_session_is_told_once_more() -> None:
    """Its message is part of the next turn's prompt: the second event is longer. The end adds nothing."""
    line, telemetry, clock, one = Line(), RecordingTelemetry(), FakeClock(), backend("a")
    pool, caches = Pool(), Caches()
    pool.configure([one])
    caches.configure(KvPinning(enabled=True), [one])
    spend = Spend("me", ZoneInfo("UTC"))
    replication = Replication(pool, caches, telemetry, clock, line, spend=spend)
    money = Charges(spend, telemetry, clock), Budgets(spend, telemetry, clock)
    attempts = Attempts(
        pool, caches, replication, telemetry, clock, charges=money[0], budgets=money[1], released=lambda: None
    )
    envelope = read_envelope(chat(DOCUMENT))
    assert isinstance(envelope, Envelope)
    chain = caches.read(request(), envelope)
    assert chain is not None
    attempt = attempts.begin(Decision("t-1", 0.0, request(), "r", "a", "m-a", ()), caches.expect(chain, one, 0))
    attempts.first_token(attempt)
    attempts.answered(attempt, b'{"role":"assistant","content":"answer"}')
    sizes = [event.boundaries[-1][1] for event in line.events if isinstance(event, PrefixServed)]
    assert sizes == [12_600, 12_606]


# Circuit breakers


def test_a_breaker_that_opens_at_one_router_opens_at_the_other() -> None:
    """It is told, counted, and its probes begin at once."""
    there, here = two_in_order()
    fail(there, 1)
    assert there.line.events == []
    fail(there, 1)
    assert there.line.events == [CircuitChanged("a", AT_A, is_open=True)]
    here.hears(there)
    assert (is_open(here), here.telemetry.circuits, here.line.events) == (True, [("a", True)], [])
    assert here.engine.pool["a"].opened.is_set()
    assert here.forward().metadata["backend"] == "b"


def test_an_event_that_says_what_is_known_changes_nothing() -> None:
    """Open stays open and closed stays closed, uncounted."""
    there, here = two_in_order()
    for changed in (True, True, False, False):
        here.engine.apply(CircuitChanged("a", AT_A, changed))
    assert here.telemetry.circuits == [("a", True), ("a", False)]
    assert not here.engine.pool["b"].state.tripped
    assert there.line.events == []


def test_a_good_probe_here_closes_it_and_tells_the_others() -> None:
    """A breaker that was opened from outside is one like any other."""
    there, here = two_in_order()
    fail(there, 2)
    here.hears(there)
    here.engine.set_health("a", Health.DOWN)
    assert is_open(here)
    here.engine.set_health("a", Health.HEALTHY)
    assert (is_open(here), here.line.events) == (False, [CircuitChanged("a", AT_A, is_open=False)])
    assert is_open(there)
    there.hears(here)
    assert (is_open(there), there.telemetry.circuits) == (False, [("a", True), ("a", False)])
    assert len(there.line.events) == 1


def test_errors_from_before_a_closing_elsewhere_do_not_count() -> None:
    """An attempt that began before it shows what was wrong then."""
    _, here = two_in_order()
    early = [here.forward().metadata["id"] for _ in range(2)]
    here.engine.apply(CircuitChanged("a", AT_A, is_open=True))
    here.clock.advance(1.0)
    here.engine.apply(CircuitChanged("a", AT_A, is_open=False))
    for decision_id in early:
        here.engine.settle(record(decision_id, 500))
    assert not is_open(here)


@pytest.mark.parametrize(
    "here",
    [guarded(settings=None), guarded("c"), replace(guarded(), endpoint=Endpoint("http", "a", 8001))],
    ids=["no breaker", "unknown", "elsewhere"],
)
def test_a_breaker_that_is_not_one_here_is_ignored(here: Backend) -> None:
    """Nothing opens, and nothing is counted."""
    _, other = two_in_order(here)
    other.engine.apply(CircuitChanged("a", AT_A, is_open=True))
    assert other.telemetry.circuits == []
    assert {slot.state.tripped for slot in other.engine.pool.slots().values()} == {False}


def test_a_router_alone_works_without_a_line() -> None:
    """The default tells nobody, and breakers open all the same."""
    rig = EngineRig(router(guarded()))
    for _ in range(2):
        rig.engine.settle(record(rig.forward().metadata["id"], 500))
    assert rig.telemetry.circuits == [("a", True)]
