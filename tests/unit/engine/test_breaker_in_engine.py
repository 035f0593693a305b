"""Circuit breakers as live requests drive them."""

from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.model.backend import Backend, CircuitBreaker, Endpoint
from router_ext.model.outcome import StreamEnd
from router_ext.model.snapshot import Health
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, record, router
from tests.fakes.rig import EngineRig
from tests.unit.engine.relays import ROLE, STREAM, TOKEN, begun, failing, give_up, relayed, settled, silent, trio

BREAKER = CircuitBreaker(error_threshold=3, window_s=10.0)


def _guarded(name: str = "a") -> Backend:
    return replace(backend(name), circuit_breaker=BREAKER)


def _config() -> RouterConfig:
    return trio(_guarded(), backend("b"))


def _is_open(rig: EngineRig, name: str = "a") -> bool:
    """Whether the breaker is open, which is the same as being down for a backend whose probes are well."""
    state = rig.engine.pool[name].state
    assert (state.health is Health.DOWN) is state.tripped
    return state.tripped


def _fail(rig: EngineRig, times: int = 1, status: int = 500, **changes: object) -> None:
    """Requests to the first backend that end so, as Envoy tells."""
    for _ in range(times):
        decision_id = rig.forward().metadata["id"]
        rig.engine.settle(record(decision_id, status, **changes))


def _tripped() -> EngineRig:
    rig = EngineRig(_config())
    _fail(rig, 3)
    assert _is_open(rig)
    return rig


# Opening


def test_it_opens_at_the_third_error_and_not_at_the_second() -> None:
    """The backend is down from then on, and requests go elsewhere."""
    rig = EngineRig(_config())
    _fail(rig, 2)
    assert (_is_open(rig), rig.telemetry.circuits) == (False, [])
    _fail(rig)
    assert (_is_open(rig), rig.telemetry.circuits) == (True, [("a", True)])
    assert rig.engine.pool["a"].opened.is_set()
    plan = rig.forward()
    assert plan.metadata["backend"] == "b"
    reasons = {item.backend: item.reason for item in rig.engine.recent[-1].candidates}
    assert reasons["a"] == "its circuit breaker is open"


@pytest.mark.parametrize(("age_s", "opens"), [(9.75, True), (10.0, False)])
def test_errors_count_for_ten_seconds(age_s: float, opens: bool) -> None:
    """One of exactly that age counts no more."""
    rig = EngineRig(_config())
    _fail(rig, 2)
    rig.clock.advance(age_s)
    _fail(rig)
    assert _is_open(rig) is opens


@pytest.mark.parametrize(
    ("status", "changes", "opens"),
    [
        (500, {}, True),
        (503, {"flags": ("UF",)}, True),
        (0, {"flags": ("UC",)}, True),
        (504, {"flags": ("UT",)}, True),
        (200, {"stream_end": StreamEnd.TRUNCATED}, True),
        (200, {"stream_end": StreamEnd.ERROR}, True),
        (200, {"stream_end": StreamEnd.WHOLE}, False),
        (200, {}, False),
        (400, {}, False),
        (404, {}, False),
        (429, {}, False),
        (499, {}, False),
        (0, {"flags": ("DC",)}, False),
        (500, {"flags": ("DC",)}, False),
    ],
)
def test_only_what_the_backend_did_wrong_opens_it(status: int, changes: dict[str, object], opens: bool) -> None:
    """Not a request that was wrong, a client that left, or a backend that is busy."""
    rig = EngineRig(_config())
    _fail(rig, 3, status, **changes)
    assert _is_open(rig) is opens


def test_good_answers_and_4xx_take_no_error_away() -> None:
    """Two errors stay two."""
    rig = EngineRig(_config())
    _fail(rig, 2)
    _fail(rig, 5, 200)
    _fail(rig, 5, 404)
    assert not _is_open(rig)
    _fail(rig)
    assert _is_open(rig)


async def test_a_request_that_fails_over_counts_where_it_failed() -> None:
    """Once for each attempt, at the moment of the move, and not again at the end of the request."""
    rig = EngineRig(trio(_guarded("a"), _guarded("b"), _guarded("c")))
    for last in (False, False, True):
        assert [_is_open(rig, name) for name in ("a", "b", "c")] == [False, False, False]
        rig.dispatcher.answer("b", None)
        rig.dispatcher.answer("c", CannedAnswer())
        decision_id = await begun(rig)
        await relayed(rig, decision_id)
        assert [_is_open(rig, name) for name in ("a", "b", "c")] == [last, last, False]
        settled(rig, decision_id)
    assert rig.telemetry.circuits == [("a", True), ("b", True)]
    assert not _is_open(rig, "c")


async def test_the_last_attempt_of_a_request_counts_at_its_end() -> None:
    """By what the router saw, not by Envoy's entry of the first answer."""
    rig = EngineRig(trio(backend("a"), _guarded("b")))
    rig.dispatcher.answer("b", *[failing(500) for _ in range(3)])
    for opened in (False, False, True):
        decision_id = await begun(rig)
        await relayed(rig, decision_id)
        assert not _is_open(rig, "b")
        settled(rig, decision_id, status=200)
        assert _is_open(rig, "b") is opened


@pytest.mark.parametrize("answer", ["429", "404", "role", "cut"])
async def test_a_relayed_answer_opens_it_by_its_failure(answer: str) -> None:
    """A busy backend and a wrong request do not, a stream without a token and one that is cut do."""
    rig = EngineRig(silent(trio(_guarded(), max_attempts=1)))
    makers = {
        "429": lambda: failing(429),
        "404": lambda: failing(404),
        "role": lambda: event_stream(ROLE),
        "cut": lambda: event_stream(TOKEN, cut=True),
    }
    for _ in range(3):
        rig.dispatcher.answer("a", makers[answer]())
        decision_id = await begun(rig, STREAM)
        await relayed(rig, decision_id)
        settled(rig, decision_id)
    assert _is_open(rig) is (answer in ("role", "cut"))


async def test_a_failing_relay_counts_although_the_client_closed_after_it() -> None:
    """The failure was known before."""
    rig = EngineRig(silent(trio(_guarded(), max_attempts=1)))
    for _ in range(3):
        rig.dispatcher.answer("a", event_stream(ROLE))
        decision_id = await begun(rig, STREAM)
        await relayed(rig, decision_id)
        settled(rig, decision_id, flags=("DC",))
    assert _is_open(rig)


async def test_silent_backends_open_it() -> None:
    """Each first token that does not come in time is an error."""
    rig = EngineRig(silent(trio(_guarded(), backend("b")), 0.01))
    for _ in range(3):
        assert not _is_open(rig)
        rig.dispatcher.answer("a", event_stream(ROLE, hangs=True))
        rig.dispatcher.answer("b", event_stream(TOKEN))
        await relayed(rig, await begun(rig, STREAM))
    assert _is_open(rig)


async def test_a_router_that_did_not_answer_opens_nothing() -> None:
    """Envoy's stand-in for a stream that comes through the router says 503, but no backend did."""
    rig = EngineRig(silent(trio(_guarded())))
    for _ in range(4):
        settled(rig, await begun(rig, STREAM), status=503)
    assert not _is_open(rig)


def test_without_a_section_nothing_ever_opens() -> None:
    """However many errors there are."""
    rig = EngineRig(router(backend()))
    _fail(rig, 50)
    assert (_is_open(rig), rig.telemetry.circuits) == (False, [])


def test_a_backend_that_is_gone_or_moved_keeps_its_errors_to_itself() -> None:
    """They belong to the slot that the requests went to."""
    rig = EngineRig(_config())
    ids = [rig.forward().metadata["id"] for _ in range(3)]
    moved = replace(_guarded(), endpoint=Endpoint("http", "a", 8001))
    rig.engine.configure(trio(moved, backend("b")))
    rig.heal()
    for decision_id in ids:
        rig.engine.settle(record(decision_id, 500))
    assert not _is_open(rig)


async def test_a_given_up_request_counts_no_error_before_its_late_entry() -> None:
    """Nobody knows how it ended."""
    rig = EngineRig(_config())
    ids = [await begun(rig) for _ in range(3)]
    give_up(rig)
    assert not _is_open(rig)
    for decision_id in ids:
        rig.engine.settle(record(decision_id, 500))
    assert _is_open(rig)


# Closing


@pytest.mark.parametrize(
    ("health", "alive", "closes"),
    [
        (Health.HEALTHY, True, True),
        (Health.HEALTHY, None, True),
        (Health.DEGRADED, True, True),
        (Health.DEGRADED, None, False),
        (Health.HEALTHY, False, False),
        (Health.DOWN, False, False),
        (Health.DOWN, None, False),
    ],
)
def test_a_probe_that_proves_life_closes_it(health: Health, alive: bool | None, closes: bool) -> None:
    """The backend is then what the probes say; any other probe leaves it open."""
    rig = _tripped()
    rig.engine.set_health("a", health, alive=alive)
    state = rig.engine.pool["a"].state
    assert (state.tripped, state.health) == ((False, health) if closes else (True, Health.DOWN))
    assert rig.telemetry.circuits == [("a", True), ("a", False)][: 1 + closes]


def test_time_alone_does_not_close_it() -> None:
    """Nor do requests that began before and end well."""
    rig = EngineRig(_config())
    early = rig.forward().metadata["id"]
    _fail(rig, 3)
    rig.clock.advance(10_000)
    rig.engine.settle(record(early, 200))
    assert _is_open(rig)


def test_errors_of_requests_from_before_the_closing_do_not_open_it_again() -> None:
    """A backend that hung shows them long after it has recovered; those of new requests count from nought."""
    rig = EngineRig(_config())
    old = [rig.forward().metadata["id"] for _ in range(3)]
    rig.clock.advance(1)
    _fail(rig, 3)
    rig.clock.advance(1)
    rig.engine.set_health("a", Health.HEALTHY, alive=True)
    for decision_id in old:
        rig.engine.settle(record(decision_id, 500))
    _fail(rig, 2)
    assert not _is_open(rig)
    _fail(rig)
    assert _is_open(rig)


# Reloads


def test_a_backend_that_stays_keeps_its_breaker_and_its_pause() -> None:
    """Also with other settings, and its errors with it."""
    rig = EngineRig(_config())
    rig.engine.pool["a"].pause(rig.clock.now_s + 0.5)
    rig.engine.configure(trio(replace(_guarded(), max_concurrent=9), backend("b")))
    assert rig.engine.pool["a"].state.paused_until == rig.clock.now_s + 0.5
    rig.clock.advance(0.5)
    _fail(rig, 2)
    rig.engine.configure(_config())
    _fail(rig)
    assert _is_open(rig)
    rig.engine.configure(trio(replace(_guarded(), max_concurrent=9), backend("b")))
    assert _is_open(rig)


def test_a_lower_threshold_counts_the_errors_that_there_were() -> None:
    """From the next one on."""
    rig = EngineRig(_config())
    _fail(rig)
    rig.engine.configure(trio(replace(backend(), circuit_breaker=CircuitBreaker(2, 10.0)), backend("b")))
    assert not _is_open(rig)
    _fail(rig)
    assert _is_open(rig)


def test_a_configuration_without_the_section_closes_it() -> None:
    """At once, with what the probes say; a new section begins with nothing counted."""
    rig = _tripped()
    rig.engine.configure(trio(backend("a"), backend("b")))
    assert (_is_open(rig), rig.engine.pool["a"].state.health) == (False, Health.HEALTHY)
    assert rig.engine.pool["a"].probe_delay_s(0, 30.0) is None
    _fail(rig, 5)
    rig.engine.configure(_config())
    _fail(rig, 2)
    assert not _is_open(rig)


def test_a_moved_backend_begins_with_a_closed_breaker() -> None:
    """And without a pause, but down until it was probed."""
    rig = _tripped()
    rig.engine.pool["a"].pause(rig.clock.now_s + 30)
    rig.engine.configure(trio(replace(_guarded(), endpoint=Endpoint("http", "a", 8001)), backend("b")))
    state = rig.engine.pool["a"].state
    assert (state.tripped, state.health, state.paused_until < 0) == (False, Health.DOWN, True)
