"""``balancing: predicted_ttft``."""

from dataclasses import replace

from router_ext.health.prefill import PrefillQueue
from router_ext.model.affinity import Balancing
from router_ext.model.backend import BackendType
from router_ext.model.snapshot import IDLE, BackendState, Health, Prefill
from tests.fakes.caches import NOW, RATE, at_work, balanced, choice_of, known, spread, work
from tests.fakes.domain import backend, snapshot

PREDICTED = balanced(Balancing.PREDICTED_TTFT)
FREE = work(0)


def _picked(pinned: dict[str, int], *states: BackendState) -> tuple[str, int]:
    choice = choice_of(PREDICTED, known(pinned), *states)
    return choice.backend.name, choice.matched


def test_a_warm_cache_is_worth_a_queue_as_long_as_what_it_saves() -> None:
    """8,000 of 10,000 are held: 2 s of prefill and a queue of 7 s are less than 10 s, a queue of 9 s is more."""
    assert _picked({"a": 8000}, at_work("a", 3, work(7)), at_work("b", 0, FREE)) == ("a", 8000)
    assert _picked({"a": 8000}, at_work("a", 3, work(9)), at_work("b", 0, FREE)) == ("b", 0)


def test_a_nearly_equal_time_keeps_the_conversation_where_it_is() -> None:
    """Up to 5 % over the least, the backend that has least to compute serves."""
    assert _picked({"a": 8000}, at_work("a", 3, work(8.4)), at_work("b", 0, FREE)) == ("a", 8000)
    assert _picked({"a": 8000}, at_work("a", 3, work(8.6)), at_work("b", 0, FREE)) == ("b", 0)


def test_a_faster_backend_gets_more() -> None:
    """Ten times the rate is worth a queue."""
    assert _picked({}, at_work("a", 0, FREE), at_work("b", 4, work(5, rate=10 * RATE))) == ("b", 0)
    assert _picked({}, at_work("a", 0, FREE), at_work("b", 4, work(10, rate=10 * RATE))) == ("a", 0)


def test_the_order_of_the_rule_does_not_count() -> None:
    """Only health and the requested name come before the time."""
    assert _picked({}, at_work("a", 0, work(1)), at_work("b", 0, FREE))[0] == "b"
    ill = BackendState(backend("b"), Health.DEGRADED, prefill=FREE)
    assert _picked({"b": 9000}, at_work("a", 0, work(30)), ill)[0] == "a"


def test_equal_backends_share_the_work() -> None:
    """Also when their learned rates differ a little: about a third each."""
    states = snapshot(*(at_work(name, 0, work(0, rate)) for name, rate in (("a", 1000.0), ("b", 980.0), ("c", 1020.0))))
    counts = spread(PREDICTED, states)
    assert all(80 <= count <= 120 for count in counts.values()), counts


def test_among_equal_times_the_fewest_in_flight_serves() -> None:
    """Before the seed."""
    assert _picked({}, at_work("a", 1, FREE), at_work("b", 0, FREE), at_work("c", 2, FREE))[0] == "b"


# While rates are unknown


def test_without_any_rate_the_load_stands_for_the_time() -> None:
    """Every backend is unknown after a start; among equal loads the one that holds the prefix serves."""
    assert _picked({}, at_work("a", 2), at_work("b", 1), at_work("c", 3)) == ("b", 0)
    assert _picked({"a": 8000}, at_work("a", 2), at_work("b", 1), at_work("c", 3)) == ("b", 0)
    assert _picked({"c": 8000}, at_work("a", 1), at_work("b", 1), at_work("c", 1)) == ("c", 8000)


def test_without_any_rate_equal_backends_share_the_work() -> None:
    """About a third each."""
    counts = spread(PREDICTED, snapshot(at_work("a"), at_work("b"), at_work("c")))
    assert all(80 <= count <= 120 for count in counts.values()), counts


def test_a_new_backend_is_taken_to_be_as_fast_as_the_others() -> None:
    """It gets its share, and the work that it was given counts."""
    assert _picked({}, at_work("a", 0, work(1)), at_work("b")) == ("b", 0)
    assert _picked({}, at_work("a", 0, work(1)), at_work("b", 1, Prefill(queued=2 * RATE))) == ("a", 0)


# Spreading


def test_a_burst_of_first_turns_does_not_land_on_one_backend() -> None:
    """30 prompts of one unknown prefix at once: the work that was given counts before the first token comes."""
    counts = _burst({}, 30)
    assert counts == {"a": 10, "b": 10, "c": 10}


def test_a_hot_prefix_spreads_when_that_pays() -> None:
    """One backend holds 9,000 of 10,000. A queue of nine there takes as long as the whole prompt elsewhere."""
    counts = _burst({"a": 9000}, 12)
    assert 8 <= counts["a"] <= 11
    assert counts["b"] >= 1
    assert _burst({"a": 9000}, 8)["a"] == 8


def test_a_prefix_that_every_backend_holds_spreads_evenly() -> None:
    """A popular system prompt."""
    assert _burst(dict.fromkeys("abc", 9000), 30) == {"a": 10, "b": 10, "c": 10}


def _burst(pinned: dict[str, int], count: int) -> dict[str, int]:
    queues = {name: _taught() for name in "abc"}
    counts = dict.fromkeys("abc", 0)
    for number in range(count):
        states = [at_work(name, counts[name], queue.state) for name, queue in queues.items()]
        choice = choice_of(PREDICTED, known(pinned, seed=number), *states)
        name = choice.backend.name
        queues[name].begin(str(number), 10_000 - choice.matched, NOW, shows_first_token=True)
        counts[name] += 1
    return counts


def _taught() -> PrefillQueue:
    queue = PrefillQueue()
    for i in range(3):
        queue.begin(f"t{i}", 10_000, 10.0 * i, shows_first_token=True)
        queue.first_token(f"t{i}", 10.0 * i + 10)
        queue.end(f"t{i}", 10.0 * i + 10)
    return queue


# Backends that cannot serve


def test_the_fastest_backend_does_not_serve_when_it_cannot() -> None:
    """Down, or at its limit."""
    busy = at_work("b", 9, work(30))
    down = BackendState(backend("a"), Health.DOWN, prefill=FREE)
    full = BackendState(backend("a", room=2), Health.HEALTHY, 2, prefill=FREE)
    assert _picked({"a": 9000}, down, busy) == ("b", 0)
    assert _picked({"a": 9000}, full, busy) == ("b", 0)
    assert _picked({"gone": 9000}, busy) == ("b", 0)


def test_an_engine_without_a_prefix_cache_of_its_own_saves_nothing() -> None:
    """Whatever the table says."""
    hosted = BackendState(replace(backend("a"), type=BackendType.OPENAI), Health.HEALTHY, prefill=work(1))
    assert _picked({"a": 9000}, hosted, at_work("b", 0, FREE)) == ("b", 0)


def test_the_record_shows_the_prediction() -> None:
    """In seconds; times that count as equal show the least."""
    choice = choice_of(PREDICTED, known({"a": 8000}), at_work("a", 3, work(7)), at_work("b", 0, FREE))
    assert [(item.backend, dict(item.scores)["predicted_ttft"]) for item in choice.candidates] == [("a", 9), ("b", 10)]
    assert [dict(item.scores)["uncached"] for item in choice.candidates] == [2000, 10_000]


def test_an_idle_backend_waits_for_nobody() -> None:
    """Also with a rate of another."""
    assert IDLE.wait_s(NOW, RATE) == 0
