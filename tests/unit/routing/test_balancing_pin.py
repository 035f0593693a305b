"""``balancing: pin``."""

import pytest

from router_ext.model.affinity import Balancing
from router_ext.model.backend import BackendType
from router_ext.model.decision import NoChoice
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Prefill
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from tests.fakes.caches import at_work, balanced, choice_of, known, spread, work
from tests.fakes.domain import backend, request, snapshot

PIN = balanced(Balancing.PIN)


def _picked(pinned: dict[str, int], *states: BackendState, pipeline: Pipeline = PIN) -> tuple[str, int]:
    choice = choice_of(pipeline, known(pinned), *states)
    return choice.backend.name, choice.matched


def test_the_backend_with_the_longest_prefix_comes_first() -> None:
    """Before the order of the rule, and though others are idle."""
    assert _picked({"c": 4000, "b": 2000}, at_work("a"), at_work("b"), at_work("c", 3)) == ("c", 4000)


def test_among_equal_prefixes_the_less_busy_backend_serves() -> None:
    """The requests of others count."""
    assert _picked({"b": 4000, "c": 4000}, at_work("a"), at_work("b", 1), at_work("c", 2)) == ("b", 4000)
    assert _picked({"b": 4000, "c": 4000}, at_work("a"), at_work("b", 1, elsewhere=2), at_work("c", 2)) == ("c", 4000)


def test_a_pin_holds_up_to_the_ratio_and_not_above() -> None:
    """12 of 18 on three backends are twice the mean; 13 of 19 are more."""
    assert _picked({"a": 4000}, at_work("a", 12), at_work("b", 3), at_work("c", 3)) == ("a", 4000)
    assert _picked({"a": 4000}, at_work("a", 13), at_work("b", 3), at_work("c", 2))[0] == "c"


def test_the_ratio_is_configured() -> None:
    """At 1 a pin holds up to the mean."""
    pipeline = balanced(Balancing.PIN, ratio=1.0)
    assert _picked({"a": 4000}, at_work("a", 9), at_work("b", 8), at_work("c", 10), pipeline=pipeline)[0] == "a"
    assert _picked({"a": 4000}, at_work("a", 10), at_work("b", 8), at_work("c", 9), pipeline=pipeline)[0] == "b"


def test_few_requests_are_no_overload() -> None:
    """Four against none hold; five against none do not."""
    assert _picked({"a": 4000}, at_work("a", 4), at_work("b"), at_work("c"))[0] == "a"
    assert _picked({"a": 4000}, at_work("a", 5), at_work("b"), at_work("c"))[0] in {"b", "c"}


def test_the_next_longest_prefix_serves_when_the_longest_is_overloaded() -> None:
    """A shorter prefix is better than none."""
    assert _picked({"a": 4000, "c": 2000}, at_work("a", 30), at_work("b"), at_work("c", 2)) == ("c", 2000)


def test_more_queued_prefill_than_the_prefix_saves_is_an_overload() -> None:
    """4,000 saved count as 6,000, and half the mean of three backends is a sixth of what the pinned one has: 7,000 are
    below 7,167, but 8,000 are above 7,333.
    """
    idle = work(0)
    assert _picked({"a": 4000}, at_work("a", 1, work(7)), at_work("b", 0, idle), at_work("c", 0, idle))[0] == "a"
    assert _picked({"a": 4000}, at_work("a", 1, work(8)), at_work("b", 0, idle), at_work("c", 0, idle))[0] != "a"


def test_queued_prefill_counts_only_where_its_rate_is_known() -> None:
    """Answers that are not streamed stay in the queue until they end: that is no prefill."""
    queued = Prefill(0.0, 1_000_000.0)
    assert _picked({"a": 4000}, at_work("a", 1, queued), at_work("b"), at_work("c"))[0] == "a"


def test_a_choice_by_load_may_still_meet_a_prefix() -> None:
    """The pin did not count, but what is cached is."""
    states = [at_work("a", 9), at_work("b", 20), at_work("c", 20)]
    pipeline = balanced(Balancing.PIN, ratio=1.0)
    assert _picked({"a": 4000, "b": 6000}, *states, pipeline=pipeline) == ("a", 4000)


# Without a usable pin


def test_without_a_pin_the_least_busy_backend_serves() -> None:
    """By all requests in it, then by those of this router."""
    assert _picked({}, at_work("a", 2), at_work("b", 1, elsewhere=2), at_work("c", 3)) == ("a", 0)
    assert _picked({}, at_work("a", 2), at_work("b", 1, elsewhere=1), at_work("c", 3)) == ("b", 0)


def test_equal_backends_share_the_work() -> None:
    """About a third each: the seed decides."""
    counts = spread(PIN, snapshot(at_work("a"), at_work("b"), at_work("c")))
    assert all(80 <= count <= 120 for count in counts.values()), counts


def test_a_burst_of_first_turns_does_not_land_on_one_backend() -> None:
    """Nobody holds the prefix yet, and each request in flight counts at once."""
    counts = {"a": 0, "b": 0, "c": 0}
    for seed in range(30):
        states = [at_work(name, count) for name, count in counts.items()]
        counts[choice_of(PIN, known(seed=seed), *states).backend.name] += 1
    assert counts == {"a": 10, "b": 10, "c": 10}


def test_without_queue_aware_routing_the_order_decides_where_no_pin_does() -> None:
    """The configuration says which backend is preferred."""
    pipeline = Pipeline([Rule("r", backends=("b", "a"))], [], balancing=Balancing.PIN)
    assert _picked({}, at_work("a"), at_work("b", 9), pipeline=pipeline) == ("b", 0)
    assert _picked({"a": 4000}, at_work("a"), at_work("b", 9), pipeline=pipeline) == ("a", 4000)


# Pinned backends that cannot serve


@pytest.mark.parametrize(
    "state",
    [
        BackendState(backend("a"), Health.DOWN),
        BackendState(backend("a", room=2), Health.HEALTHY, 2),
        BackendState(backend("a"), Health.DEGRADED),
    ],
    ids=["down", "full", "degraded"],
)
def test_a_pinned_backend_that_is_not_well_does_not_serve(state: BackendState) -> None:
    """Another one does; what that one holds counts."""
    assert _picked({"a": 4000, "b": 1000}, state, at_work("b"), at_work("c")) == ("b", 1000)


def test_a_pinned_backend_that_was_removed_is_passed_over() -> None:
    """Its name is in no snapshot."""
    assert _picked({"gone": 4000}, at_work("b"), at_work("c", 1)) == ("b", 0)


@pytest.mark.parametrize("engine", [BackendType.OPENAI, BackendType.OLLAMA])
def test_engines_without_a_prefix_cache_of_their_own_are_never_pinned(engine: BackendType) -> None:
    """Whatever the table says."""
    hosted = BackendState(backend("a", engine=engine), Health.HEALTHY, 1)
    assert _picked({"a": 4000}, hosted, at_work("b"), at_work("c", 1)) == ("b", 0)


# Pinned backends outside the rule


def _outside(pinned: dict[str, int], *states: BackendState, model: str = "m-a") -> tuple[str, int]:
    pipeline = balanced(Balancing.PIN, rule=("a", "b"), chain=("a",))
    choice = pipeline.route(Asked(request(model), snapshot(*states), known(pinned)))
    assert not isinstance(choice, NoChoice)
    return choice.backend.name, choice.matched


def test_a_pinned_backend_outside_the_rule_serves() -> None:
    """Where it answers to the requested name."""
    assert _outside({"z": 4000}, at_work("a"), at_work("b"), at_work("z", 1)) == ("z", 4000)


def test_a_pinned_backend_outside_the_rule_must_hold_more_than_those_inside() -> None:
    """At equal length the rule's own serves."""
    assert _outside({"z": 4000, "b": 4000}, at_work("a"), at_work("b", 1), at_work("z")) == ("b", 4000)
    assert _outside({"z": 4001, "b": 4000}, at_work("a"), at_work("b", 1), at_work("z")) == ("z", 4001)


@pytest.mark.parametrize(
    "state",
    [
        BackendState(backend("z"), Health.DOWN),
        BackendState(backend("z"), Health.DEGRADED),
        BackendState(backend("z", room=2), Health.HEALTHY, 2),
        BackendState(backend("z", model="another"), Health.HEALTHY),
        BackendState(backend("z", engine=BackendType.OPENAI), Health.HEALTHY),
        BackendState(backend("z"), Health.HEALTHY, 5),
    ],
    ids=["down", "degraded", "full", "another model", "no cache", "overloaded"],
)
def test_a_pinned_backend_outside_the_rule_must_be_fit(state: BackendState) -> None:
    """Otherwise it is no candidate at all."""
    assert _outside({"z": 4000}, at_work("a"), at_work("b", 1), state) == ("a", 0)


def test_a_pinned_backend_outside_the_rule_is_under_its_conditions() -> None:
    """Price and capabilities."""
    rule = Rule("r", backends=("a",), max_cost_1m=5, required_capabilities=frozenset({"json_output"}))
    pipeline = Pipeline([rule], [], queue_aware=True)
    inside = backend("a", capabilities=("json_output",))
    for outside, name in (
        (backend("z", capabilities=("json_output",), cost=5), "z"),
        (backend("z", capabilities=("json_output",), cost=6), "a"),
        (backend("z", cost=5), "a"),
    ):
        assert choice_of(pipeline, known({"z": 4000}), inside, outside).backend.name == name


def test_a_pinned_backend_outside_the_rule_does_not_change_who_may_serve_inside() -> None:
    """It has the adapter and they do not; without its pin they serve under their own model."""
    owner = BackendState(backend("z", adapters=("sql",)), Health.HEALTHY)
    assert _outside({"z": 4000}, at_work("a"), at_work("b", 1), owner, model="sql") == ("z", 4000)
    assert _outside({}, at_work("a"), at_work("b", 1), owner, model="sql") == ("a", 0)


def test_a_pinned_backend_outside_the_rule_serves_when_nobody_inside_can() -> None:
    """Before the fallback chain."""
    down = [BackendState(backend(name), Health.DOWN) for name in "ab"]
    assert _outside({"z": 4000}, *down, at_work("z")) == ("z", 4000)


def test_the_record_shows_the_pin() -> None:
    """As a score, negative because less is better."""
    choice = choice_of(PIN, known({"b": 4000}), at_work("a"), at_work("b", 1), BackendState(backend("c"), Health.DOWN))
    first, second, dropped = choice.candidates
    assert first.backend == "b"
    assert first.scores[:4] == (("health", 0), ("serves_model", 0), ("pin", -4000), ("load", 1))
    assert (second.backend, second.scores[2]) == ("a", ("pin", 0))
    assert (dropped.backend, dropped.filtered_by) == ("c", "health")
