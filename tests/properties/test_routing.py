"""Any configuration, any state."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from router_ext.model.affinity import Affinity
from router_ext.model.decision import Choice
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Snapshot, TtftStats
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from router_ext.routing.probes import PROBE_SHARE
from router_ext.routing.scorers import NO_AFFINITY
from tests.fakes.domain import backend, request

NAMES = ("a", "b", "c", "d")
WORDS = st.lists(st.sampled_from(["vision", "json_output"]), unique=True).map(tuple)
ORDERS = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)
NOW = 1000.0
STATS = st.builds(
    TtftStats,
    samples=st.sampled_from([9, 10]),
    newest_at=st.sampled_from([NOW - 301, NOW]),
    p95_ms=st.sampled_from([100.0, 900.0]),
)


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    """Some of the backends, each in any state."""
    found: dict[str, BackendState] = {}
    for name in draw(ORDERS):
        item = backend(
            name,
            capabilities=draw(WORDS),
            adapters=draw(st.sampled_from([(), ("sql",)])),
            cost=draw(st.sampled_from([None, 1.0, 5.0])),
            room=2,
        )
        found[name] = BackendState(
            item,
            draw(st.sampled_from(Health)),
            draw(st.integers(0, 3)),
            paused_until=draw(st.sampled_from([0.0, NOW, NOW + 1])),
            ttft=draw(STATS),
        )
    return found


RULES = st.builds(
    Rule,
    name=st.just("r"),
    backends=ORDERS,
    max_cost_1m=st.sampled_from([0.0, 2.0]),
    required_capabilities=WORDS.map(frozenset),
    max_ttft_ms=st.sampled_from([0, 800]),
)
REQUESTS = st.builds(
    request, model=st.sampled_from(["m-a", "sql", ""]), content_type=st.sampled_from(["text", "vision"])
)


MATCHED = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9000), max_size=2)
AFFINITIES = st.just(NO_AFFINITY) | MATCHED.map(lambda matched: Affinity(9000, matched, 1, NOW))


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Any request at any moment, with or without failed attempts."""
    tried = draw(st.frozensets(st.sampled_from(NAMES), max_size=2))
    return Asked(draw(REQUESTS), draw(states()), draw(AFFINITIES), NOW, draw(st.sampled_from([0.0, 0.5])), tried)


@given(st.lists(RULES, max_size=1), ORDERS, questions(), st.booleans())
def test_the_chosen_backend_may_serve(
    rules: list[Rule], chain: tuple[str, ...], asked: Asked, queue_aware: bool
) -> None:
    """It was not filtered, is up, has room, was not tried, is not paused, meets the rule, and stands first among the
    candidates.
    """
    choice = Pipeline(rules, chain, queue_aware=queue_aware).route(asked)
    kept = [item.backend for item in choice.candidates if not item.filtered_by]
    assert all(item.reason for item in choice.candidates if item.filtered_by)
    assert len({item.backend for item in choice.candidates}) == len(choice.candidates)
    if not isinstance(choice, Choice):
        assert not kept
        return
    state = asked.snapshot[choice.backend.name]
    assert kept[0] == choice.backend.name
    assert state.health is not Health.DOWN
    assert state.in_flight < 2
    assert choice.backend.name not in asked.tried
    assert state.paused_until <= NOW
    for rule in rules:
        assert rule.required_capabilities <= choice.backend.capabilities
        assert not rule.max_cost_1m or (choice.backend.max_cost_1m or 0) <= rule.max_cost_1m


@given(RULES, ORDERS, questions(), st.booleans())
def test_a_limit_on_latency_never_refuses_a_request(
    rule: Rule, chain: tuple[str, ...], asked: Asked, queue_aware: bool
) -> None:
    """Whoever is slow, a choice is made whenever one would be made without the limit."""
    limited, free = (
        Pipeline([replace(rule, max_ttft_ms=limit)], chain, queue_aware=queue_aware).route(asked) for limit in (800, 0)
    )
    assert isinstance(limited, Choice) == isinstance(free, Choice)


@given(RULES, ORDERS, questions())
def test_a_slow_backend_serves_as_a_probe_or_when_the_limit_was_missed(
    rule: Rule, chain: tuple[str, ...], asked: Asked
) -> None:
    """And the limit is not missed while somebody is fast."""
    choice = Pipeline([rule], chain).route(asked)
    if isinstance(choice, Choice):
        ttft = asked.snapshot[choice.backend.name].ttft
        slow = bool(rule.max_ttft_ms) and ttft.is_telling(NOW) and ttft.p95_ms > rule.max_ttft_ms
        is_probe = choice.candidates[0].reason.startswith("probe: ")
        assert slow == (is_probe or choice.sla_missed)
        assert not is_probe or asked.draw < PROBE_SHARE


@given(st.lists(RULES, max_size=2), ORDERS, questions())
def test_equal_input_gives_equal_output(rules: list[Rule], chain: tuple[str, ...], asked: Asked) -> None:
    """Nothing is remembered between decisions, in one pipeline or in two."""
    pipeline = Pipeline(rules, chain)
    first = pipeline.route(asked)
    assert pipeline.route(asked) == first
    assert Pipeline(rules, chain).route(structs.replace(asked, snapshot=dict(asked.snapshot))) == first
