"""A rule's limit on the time to the first token: who is filtered, who serves instead, and who is tried out."""

import pytest

from router_ext.model.affinity import Balancing
from router_ext.model.decision import Candidate, Choice, NoChoice
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, TtftStats
from router_ext.routing.asked import Asked
from router_ext.routing.filters.ttft import TtftSla
from router_ext.routing.pipeline import Pipeline
from tests.fakes.caches import known
from tests.fakes.domain import backend, request, snapshot

NOW = 1000.0
FAST = TtftStats(50, NOW - 1, 200.0, 800.0)
SLOW = TtftStats(50, NOW - 1, 200.0, 2310.0)
LIMITED = Rule("r", backends=("a", "b"), max_ttft_ms=800)
PIPELINE = Pipeline([LIMITED], ["c", "b"])


def _state(name: str, ttft: TtftStats, in_flight: int = 0, paused_until: float = 0.0) -> BackendState:
    return BackendState(backend(name, room=4), Health.HEALTHY, in_flight, ttft=ttft, paused_until=paused_until)


def _down(name: str, ttft: TtftStats = FAST) -> BackendState:
    return BackendState(backend(name), Health.DOWN, ttft=ttft)


def _routed(
    *states: BackendState, draw: float = 0.5, pipeline: Pipeline = PIPELINE, of: InferenceRequest | None = None
) -> Choice | NoChoice:
    return pipeline.route(Asked(of or request(), snapshot(*states), now=NOW, draw=draw))


def _picked(
    *states: BackendState, draw: float = 0.5, pipeline: Pipeline = PIPELINE, of: InferenceRequest | None = None
) -> tuple[str, bool]:
    choice = _routed(*states, draw=draw, pipeline=pipeline, of=of)
    assert isinstance(choice, Choice), choice
    return choice.backend.name, choice.sla_missed


# The filter


@pytest.mark.parametrize(
    ("samples", "age_s", "telling"),
    [(10, 0.0, True), (9, 0.0, False), (0, 0.0, False), (10, 300.0, True), (100, 300.5, False)],
)
def test_figures_tell_from_ten_samples_on_and_for_five_minutes(samples: int, age_s: float, telling: bool) -> None:
    """The age is that of the newest sample."""
    stats = TtftStats(samples, NOW - age_s, 200.0, 2310.0)
    assert stats.is_telling(NOW) is telling
    reasons = {"a": "P95 of 2310 ms is over 800 ms"} if telling else {}
    assert TtftSla().removed([_state("a", stats)], Asked(request(), {}, now=NOW), LIMITED) == reasons


def test_without_samples_figures_tell_nothing() -> None:
    """Also at the first instant of the clock."""
    assert not TtftStats().is_telling(0.0)


def test_the_percentile_may_reach_the_limit() -> None:
    """800 ms pass a limit of 800; what is over it is rounded up in the reason."""
    states = [_state("a", FAST), _state("b", TtftStats(50, NOW, 200.0, 800.1))]
    asked = Asked(request(), {}, now=NOW)
    assert TtftSla().removed(states, asked, LIMITED) == {"b": "P95 of 801 ms is over 800 ms"}


def test_without_a_limit_no_backend_is_too_slow() -> None:
    """0 means no limit."""
    assert TtftSla().removed([_state("a", SLOW)], Asked(request(), {}, now=NOW), Rule("r")) == {}


# Who serves


def test_a_backend_that_is_too_slow_is_passed_over() -> None:
    """The next of the rule serves, and the record has the reason."""
    choice = _routed(_state("a", SLOW), _state("b", FAST), _state("c", FAST))
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.sla_missed) == ("b", False)
    assert choice.candidates[-1] == Candidate("a", "max_ttft", "P95 of 2310 ms is over 800 ms")


def test_a_backend_of_which_too_little_is_known_serves() -> None:
    """Few samples, or old ones."""
    assert _picked(_state("a", TtftStats(9, NOW, 1.0, 9999.0)), _state("b", FAST)) == ("a", False)
    assert _picked(_state("a", TtftStats(100, NOW - 301, 1.0, 9999.0)), _state("b", FAST)) == ("a", False)


def test_the_limit_holds_for_the_fallback_chain() -> None:
    """A fast backend of the chain serves within the limit."""
    assert _picked(_state("a", SLOW), _state("b", SLOW), _state("c", FAST)) == ("c", False)


def test_when_all_are_too_slow_the_fallback_chain_serves_without_the_limit() -> None:
    """In its own order, and the choice says that the limit was missed."""
    assert _picked(_state("a", SLOW), _state("b", SLOW), _state("c", SLOW)) == ("c", True)
    assert _picked(_state("a", SLOW), _state("b", SLOW), _down("c", SLOW)) == ("b", True)


def test_when_all_are_too_slow_the_rules_own_backends_come_after_the_chain() -> None:
    """They are better than a refusal."""
    assert _picked(_state("a", SLOW), _down("b"), _down("c")) == ("a", True)
    assert _picked(_state("a", SLOW), _down("b"), _state("c", SLOW, in_flight=4)) == ("a", True)


def test_the_rules_other_conditions_hold_when_all_are_too_slow() -> None:
    """Only the limit is lifted."""
    pipeline = Pipeline([Rule("r", backends=("a",), max_ttft_ms=800, max_cost_1m=5)], ["c"])
    dear = BackendState(backend("c", cost=6), Health.HEALTHY, ttft=SLOW)
    assert _picked(_state("a", SLOW), dear, pipeline=pipeline) == ("a", True)


def test_a_slow_backend_is_better_than_none_when_the_chain_hides_it() -> None:
    """The chain's owner of the adapter is away: without the limit the rule's own backend would serve."""
    owner = BackendState(backend("c", adapters=("sql",)), Health.DOWN)
    assert _picked(_state("a", FAST), owner, of=request("sql")) == ("a", False)
    assert _picked(_state("a", SLOW), owner, of=request("sql")) == ("a", True)


def test_requests_without_a_rule_have_no_limit() -> None:
    """The defaults have none."""
    assert _picked(_state("a", SLOW), pipeline=Pipeline([], ["a"])) == ("a", False)


def test_a_refusal_beside_the_limit_says_what_stands_in_the_way() -> None:
    """Full, or paused: slow does not matter for a backend that cannot serve anyway."""
    full = _routed(_state("a", SLOW, in_flight=4), _down("b"), _down("c"))
    assert isinstance(full, NoChoice)
    assert (full.full, full.paused_until) == (True, None)
    paused = _routed(_state("a", SLOW, paused_until=NOW + 9), _down("b"), _down("c"))
    assert isinstance(paused, NoChoice)
    assert (paused.full, paused.paused_until) == (False, NOW + 9)


def test_a_choice_names_the_backends_that_the_limit_left_out() -> None:
    """When all are too slow these are all that could have served; one that is tried out is not left out."""
    some = _routed(_state("a", SLOW), _state("b", FAST), _state("c", SLOW))
    chain = _routed(_state("a", SLOW), _state("b", SLOW), _state("c", FAST))
    missed = _routed(_state("a", SLOW), _down("b", SLOW), _state("c", SLOW))
    probe = _routed(_state("a", SLOW), _state("b", FAST), draw=0.0)
    named = [choice.too_slow for choice in (some, chain, missed, probe) if isinstance(choice, Choice)]
    assert named == [("a",), ("a", "b"), ("c", "a"), ()]


# Pinned backends outside the rule


def test_a_pinned_backend_outside_the_rule_is_under_its_limit() -> None:
    """Also when all the others are too slow."""
    pipeline = Pipeline([LIMITED], ["b"], queue_aware=True, balancing=Balancing.PIN)

    def picked(outside: TtftStats, inside: TtftStats) -> str:
        states = snapshot(_state("a", inside), _state("b", inside, 1), _state("z", outside))
        choice = pipeline.route(Asked(request(), states, known({"z": 4000}), NOW))
        assert isinstance(choice, Choice)
        return choice.backend.name

    assert picked(FAST, FAST) == "z"
    assert picked(SLOW, FAST) == "a"
    assert picked(FAST, SLOW) == "z"
    assert picked(SLOW, SLOW) == "a"


def test_a_slow_pinned_backend_outside_the_rule_serves_where_nobody_else_can() -> None:
    """The limit refuses nobody, whoever it leaves out: without it the pin would have served."""
    pipeline = Pipeline([LIMITED], [], balancing=Balancing.PIN)
    states = snapshot(_down("a"), _down("b"), _state("z", SLOW))
    choice = pipeline.route(Asked(request(), states, known({"z": 4000}), NOW))
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.sla_missed) == ("z", True)


# Who is tried out


@pytest.mark.parametrize(("draw", "name"), [(0.0, "a"), (0.0099, "a"), (0.01, "b"), (0.9, "b")])
def test_one_request_in_a_hundred_tries_out_a_slow_backend(draw: float, name: str) -> None:
    """Otherwise nobody would ever learn that it is fast again."""
    assert _picked(_state("a", SLOW), _state("b", FAST), draw=draw) == (name, False)


def test_the_slow_backend_not_heard_of_for_longest_is_tried_out() -> None:
    """By its newest sample."""
    pipeline = Pipeline([Rule("r", backends=("a", "b", "d"), max_ttft_ms=800)], [])
    older = TtftStats(50, NOW - 60, 200.0, 900.0)
    assert _picked(_state("a", SLOW), _state("b", older), _state("d", FAST), draw=0.0, pipeline=pipeline)[0] == "b"


def test_slow_backends_are_tried_out_when_the_fallback_chain_serves() -> None:
    """The rule's own as well as the chain's."""
    assert _picked(_state("a", SLOW), _down("b"), _state("c", FAST), draw=0.0) == ("a", False)


@pytest.mark.parametrize(
    "state", [_down("a", SLOW), _state("a", SLOW, in_flight=4), _state("a", SLOW, paused_until=NOW + 1)]
)
def test_a_backend_that_could_not_serve_anyway_is_not_tried_out(state: BackendState) -> None:
    """It has to pass every other filter."""
    assert _picked(state, _state("b", FAST), draw=0.0) == ("b", False)


def test_a_backend_that_failed_the_request_is_not_tried_out_with_it() -> None:
    """The draw stays the same for all attempts."""
    states = snapshot(_state("a", SLOW), _state("b", FAST))
    choice = PIPELINE.route(Asked(request(), states, now=NOW, draw=0.0, tried=frozenset({"a"})))
    assert isinstance(choice, Choice)
    assert choice.backend.name == "b"


def test_nobody_is_tried_out_when_nobody_is_too_slow() -> None:
    """The first of the rule serves."""
    assert _picked(_state("a", FAST), _state("b", FAST), draw=0.0) == ("a", False)


def test_when_all_are_too_slow_every_request_is_a_sample_anyway() -> None:
    """The draw changes nothing."""
    assert _picked(_state("a", SLOW), _state("b", SLOW), _state("c", SLOW), draw=0.0) == ("c", True)


def test_a_backend_that_is_tried_out_is_recorded_first_with_the_reason_against_it() -> None:
    """Then those that rank before it, then those that were left out."""
    pipeline = Pipeline([Rule("r", backends=("a", "b", "d"), max_ttft_ms=800)], [])
    choice = _routed(_state("a", SLOW), _state("b", FAST, in_flight=1), _down("d"), draw=0.0, pipeline=pipeline)
    assert choice.candidates == (
        Candidate(
            "a",
            reason="probe: P95 of 2310 ms is over 800 ms",
            scores=(("health", 0), ("order", 1), ("in_flight", 0)),
        ),
        Candidate("b", scores=(("health", 0), ("order", 0), ("in_flight", 1))),
        Candidate("d", "health", "is down"),
    )


def test_a_prefix_on_a_backend_that_is_tried_out_counts() -> None:
    """It is what the backend does not have to compute."""
    pipeline = Pipeline([LIMITED], [], queue_aware=True, balancing=Balancing.PIN)
    states = snapshot(_state("a", SLOW), _state("b", FAST))
    choice = pipeline.route(Asked(request(), states, known({"a": 4000, "b": 1000}), NOW, draw=0.0))
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.matched) == ("a", 4000)
