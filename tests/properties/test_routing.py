"""Any configuration, any state."""

from hypothesis import given
from hypothesis import strategies as st

from router_ext.model.decision import Choice
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Snapshot
from router_ext.routing.pipeline import Pipeline
from tests.fakes.domain import backend, request

NAMES = ("a", "b", "c", "d")
WORDS = st.lists(st.sampled_from(["vision", "json_output"]), unique=True).map(tuple)
ORDERS = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)


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
        found[name] = BackendState(item, draw(st.sampled_from(Health)), draw(st.integers(0, 3)))
    return found


RULES = st.builds(
    Rule,
    name=st.just("r"),
    backends=ORDERS,
    max_cost_1m=st.sampled_from([0.0, 2.0]),
    required_capabilities=WORDS.map(frozenset),
)
REQUESTS = st.builds(
    request, model=st.sampled_from(["m-a", "sql", ""]), content_type=st.sampled_from(["text", "vision"])
)


@given(st.lists(RULES, max_size=1), ORDERS, states(), REQUESTS, st.booleans())
def test_the_chosen_backend_may_serve(
    rules: list[Rule], chain: tuple[str, ...], found: Snapshot, asked: InferenceRequest, queue_aware: bool
) -> None:
    """It was not filtered, is up, has room, meets the rule, and stands first among the candidates."""
    choice = Pipeline(rules, chain, queue_aware=queue_aware).route(asked, found)
    kept = [item.backend for item in choice.candidates if not item.filtered_by]
    assert all(item.reason for item in choice.candidates if item.filtered_by)
    assert len({item.backend for item in choice.candidates}) == len(choice.candidates)
    if not isinstance(choice, Choice):
        assert not kept
        return
    state = found[choice.backend.name]
    assert kept[0] == choice.backend.name
    assert state.health is not Health.DOWN
    assert state.in_flight < 2
    for rule in rules:
        assert rule.required_capabilities <= choice.backend.capabilities
        assert not rule.max_cost_1m or (choice.backend.max_cost_1m or 0) <= rule.max_cost_1m


@given(st.lists(RULES, max_size=2), ORDERS, states(), REQUESTS)
def test_equal_input_gives_equal_output(
    rules: list[Rule], chain: tuple[str, ...], found: Snapshot, asked: InferenceRequest
) -> None:
    """Nothing is remembered between decisions, in one pipeline or in two."""
    pipeline = Pipeline(rules, chain)
    first = pipeline.route(asked, found)
    assert pipeline.route(asked, found) == first
    assert Pipeline(rules, chain).route(asked, dict(found)) == first
