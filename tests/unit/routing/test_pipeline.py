"""The whole decision."""

import pytest
from msgspec.structs import replace

from router_ext.model.affinity import Affinity
from router_ext.model.backend import Backend
from router_ext.model.decision import Candidate, Choice, NoChoice
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Match, Rule
from router_ext.model.snapshot import BackendState, Health, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline, upstream_model
from tests.fakes.domain import backend, request, snapshot

A, B, C = backend("a"), backend("b", model="m-b"), backend("c", model="m-c")


def _down(item: Backend) -> BackendState:
    return BackendState(item, Health.DOWN)


def _degraded(item: Backend, in_flight: int = 0) -> BackendState:
    return BackendState(item, Health.DEGRADED, in_flight)


def _busy(item: Backend, in_flight: int) -> BackendState:
    return BackendState(item, Health.HEALTHY, in_flight)


def _choice(pipeline: Pipeline, states: Snapshot, of: InferenceRequest | None = None) -> Choice:
    choice = pipeline.route(Asked(of or request(), states))
    assert isinstance(choice, Choice), choice
    return choice


def _picked(pipeline: Pipeline, states: Snapshot, of: InferenceRequest | None = None) -> tuple[str, str]:
    choice = _choice(pipeline, states, of)
    return choice.backend.name, choice.rule


RULE = Pipeline([Rule("r", backends=("b", "a"))], ["c", "a"])
CHAIN = Pipeline([], ["b", "a"])


def test_a_rule_takes_the_first_of_its_backends() -> None:
    """In the rule's order, not the configuration's, however busy that one is."""
    assert _picked(RULE, snapshot(A, B, C)) == ("b", "r")
    assert _picked(RULE, snapshot(A, _busy(B, 63), C)) == ("b", "r")


def test_a_down_backend_is_passed_over() -> None:
    """The next of the rule serves."""
    assert _picked(RULE, snapshot(A, _down(B), C)) == ("a", "r")


def test_a_degraded_backend_comes_after_every_healthy_one() -> None:
    """Whatever the order; among degraded ones the order counts again."""
    assert _picked(RULE, snapshot(A, _degraded(B), C)) == ("a", "r")
    assert _picked(RULE, snapshot(_degraded(A), _degraded(B), C)) == ("b", "r")


def test_a_degraded_backend_of_the_rule_comes_before_the_fallback_chain() -> None:
    """The chain is for rules without any candidate left."""
    assert _picked(RULE, snapshot(_degraded(A), _down(B), C)) == ("a", "r")


def test_the_fallback_chain_serves_when_the_rule_has_nobody_left() -> None:
    """The rule's name stays, since its conditions do."""
    assert _picked(RULE, snapshot(_down(A), _down(B), C)) == ("c", "r")


def test_the_fallback_chain_stays_under_the_conditions_of_the_rule() -> None:
    """Capabilities and cost are not relaxed because a backend is down."""
    rule = Rule("r", backends=("a",), max_cost_1m=5, required_capabilities=frozenset({"json_output"}))
    pipeline = Pipeline([rule], ["dear", "plain", "fits"])
    dear = backend("dear", cost=6, capabilities=("json_output",))
    fits = backend("fits", cost=5, capabilities=("json_output",))
    states = snapshot(_down(backend("a", capabilities=("json_output",))), dear, backend("plain"), fits)
    assert _picked(pipeline, states) == ("fits", "r")
    choice = pipeline.route(Asked(request(), {name: states[name] for name in ("a", "dear", "plain")}))
    assert choice == NoChoice(
        "r",
        (
            Candidate("plain", "capabilities", "lacks json_output"),
            Candidate("dear", "cost", "costs $6 per 1M tokens, over $5"),
            Candidate("a", "health", "is down"),
        ),
        full=False,
    )


def test_a_request_without_a_rule_goes_down_the_chain() -> None:
    """Under the name ``default``."""
    pipeline = Pipeline([Rule("r", match=Match(service="x"), backends=("c",))], ["b", "a"])
    assert _picked(pipeline, snapshot(A, B, C), request("unknown")) == ("b", "default")


def test_the_chain_prefers_a_backend_that_serves_the_requested_name() -> None:
    """By its model, an alias or an adapter; health still counts first."""
    named = {
        "m-a": A,
        "fast": backend("a", aliases=("fast",)),
        "sql": backend("a", adapters=("sql",)),
    }
    for name, item in named.items():
        assert _picked(CHAIN, snapshot(item, B), request(name)) == ("a", "default")
    assert _picked(CHAIN, snapshot(_degraded(A), B), request("m-a")) == ("b", "default")


def test_a_rule_does_not_prefer_a_backend_for_its_model() -> None:
    """The rule says where the request goes; the model name is written anew."""
    choice = _choice(RULE, snapshot(A, B, C), request("m-a"))
    assert (choice.backend.name, choice.upstream_model) == ("b", "m-b")


def test_a_full_backend_is_passed_over_at_its_limit() -> None:
    """63 of 64 is room, 64 of 64 is none."""
    assert _picked(RULE, snapshot(A, _busy(B, 63), C)) == ("b", "r")
    assert _picked(RULE, snapshot(A, _busy(B, 64), C)) == ("a", "r")


@pytest.mark.parametrize(
    ("states", "full"),
    [
        (snapshot(_busy(A, 64), _busy(B, 64), _down(C)), True),
        (snapshot(_down(A), _down(B), _busy(C, 64)), True),
        (snapshot(_down(A), _down(B), _down(C)), False),
        (snapshot(BackendState(A, Health.DOWN, 64), _down(B), _down(C)), False),
        ({}, False),
    ],
)
def test_a_refusal_says_whether_a_wait_may_help(states: Snapshot, full: bool) -> None:
    """It may where a backend would do but for its limit; a down one at its limit would not."""
    choice = RULE.route(Asked(request(), states))
    assert isinstance(choice, NoChoice)
    assert choice.full is full


def test_a_retry_goes_to_a_backend_that_was_not_tried() -> None:
    """Within the rule first, then down the chain; when all were tried nobody is left."""
    for tried, name in (({"b"}, "a"), ({"a"}, "b"), ({"a", "b"}, "c")):
        choice = RULE.route(Asked(request(), snapshot(A, B, C), tried=frozenset(tried)))
        assert isinstance(choice, Choice)
        assert choice.backend.name == name
    refused = RULE.route(Asked(request(), snapshot(A, B, C), tried=frozenset("abc")))
    assert isinstance(refused, NoChoice)
    assert (refused.full, refused.paused_until) == (False, None)


def test_a_retry_does_not_replace_the_only_owner_of_an_adapter() -> None:
    """Another backend would answer as another model."""
    owner = backend("a", adapters=("sql",))
    asked = Asked(request("sql"), snapshot(owner, B, C), tried=frozenset({"a"}))
    assert isinstance(RULE.route(asked), NoChoice)


def test_a_paused_backend_is_passed_over() -> None:
    """Until its pause has passed."""
    states = snapshot(A, BackendState(B, Health.HEALTHY, paused_until=100.0), C)
    for now, name in ((99.9, "a"), (100.0, "b")):
        choice = RULE.route(Asked(request(), states, now=now))
        assert isinstance(choice, Choice)
        assert choice.backend.name == name


def test_a_refusal_has_the_end_of_the_first_pause_of_rule_and_chain() -> None:
    """A pause that hides behind an adapter's owner in the chain counts, too."""
    names = [backend("b"), backend("a"), backend("c", adapters=("sql",))]
    paused = [
        BackendState(item, Health.HEALTHY, paused_until=until)
        for item, until in zip(names, (130.0, 150.0, 140.0), strict=True)
    ]
    choice = RULE.route(Asked(request("sql"), snapshot(*paused), now=100.0))
    assert isinstance(choice, NoChoice)
    assert choice.paused_until == 130.0


def test_queue_aware_routing_takes_the_least_busy() -> None:
    """The order decides among equals; health and the requested name count first."""
    rule = Pipeline([Rule("r", backends=("b", "a"))], [], queue_aware=True)
    assert _picked(rule, snapshot(_busy(A, 1), _busy(B, 2)), request("x")) == ("a", "r")
    assert _picked(rule, snapshot(_busy(A, 2), _busy(B, 2)), request("x")) == ("b", "r")
    assert _picked(rule, snapshot(_degraded(A), _busy(B, 9)), request("x")) == ("b", "r")
    assert _picked(rule, snapshot(_busy(A, 9), B), request("m-a")) == ("a", "r")


def test_an_adapter_goes_only_where_it_is_loaded() -> None:
    """The adapter's own name is sent; a backend of the same list without it is not used instead."""
    pipeline = Pipeline([Rule("r", backends=("b", "a"))], [])
    loaded = backend("a", adapters=("sql",))
    choice = _choice(pipeline, snapshot(loaded, B), request("sql"))
    assert (choice.backend.name, choice.upstream_model) == ("a", "sql")
    assert isinstance(pipeline.route(Asked(request("sql"), snapshot(_down(loaded), B))), NoChoice)


def test_an_adapter_whose_only_owner_is_away_is_not_replaced_by_the_fallback_chain() -> None:
    """Not under a base model; another owner in the chain does serve."""
    pipeline = Pipeline([Rule("r", backends=("b", "a"))], ["b", "c"])
    owner = backend("a", adapters=("sql",))
    assert pipeline.route(Asked(request("sql"), snapshot(_down(owner), B, C))) == NoChoice(
        "r",
        (
            Candidate("b", "lora", "does not have the adapter"),
            Candidate("c", "lora", "does not have the adapter"),
            Candidate("a", "health", "is down"),
        ),
        full=False,
    )
    other = backend("c", adapters=("sql",))
    assert _picked(pipeline, snapshot(_down(owner), B, other), request("sql")) == ("c", "r")


def test_an_adapter_whose_only_owner_is_full_may_be_waited_for() -> None:
    """The refusal says so."""
    pipeline = Pipeline([Rule("r", backends=("a",))], ["c"])
    choice = pipeline.route(Asked(request("sql"), snapshot(_busy(backend("a", adapters=("sql",)), 64), C)))
    assert isinstance(choice, NoChoice)
    assert choice.full


def test_an_image_whose_only_viewer_is_away_goes_to_no_other() -> None:
    """The fallback chain's backends do not declare that they see."""
    pipeline = Pipeline([Rule("r", backends=("a",))], ["c"])
    sees = backend("a", capabilities=("vision",))
    assert isinstance(pipeline.route(Asked(request(content_type="vision"), snapshot(_down(sees), C))), NoChoice)
    assert _picked(pipeline, snapshot(_down(sees), C)) == ("c", "r")


def test_an_adapter_that_nobody_has_goes_to_any_available_backend() -> None:
    """Under that backend's own model name."""
    choice = _choice(RULE, snapshot(A, _down(B), C), request("no-such-adapter"))
    assert (choice.backend.name, choice.upstream_model) == ("a", "m-a")


def test_an_image_goes_to_a_backend_that_sees() -> None:
    """Before the rule's order counts."""
    sees = backend("a", capabilities=("vision",))
    assert _picked(RULE, snapshot(sees, B), request(content_type="vision")) == ("a", "r")
    assert _picked(RULE, snapshot(sees, B), request()) == ("b", "r")


def test_every_candidate_is_recorded_with_its_scores_or_its_reason() -> None:
    """The chosen one first, then the others by rank, then those that were left out."""
    pipeline = Pipeline([Rule("r", backends=("c", "b", "a"))], [])
    choice = _choice(pipeline, snapshot(_busy(A, 3), _degraded(B, 1), _down(C)))
    assert choice.candidates == (
        Candidate("a", scores=(("health", 0), ("order", 1), ("in_flight", 3))),
        Candidate("b", scores=(("health", 1), ("order", 0), ("in_flight", 1))),
        Candidate("c", filtered_by="health", reason="is down"),
    )


def test_names_that_are_not_configured_are_passed_over() -> None:
    """A snapshot of another moment may lack them."""
    assert _picked(RULE, snapshot(A)) == ("a", "r")


@pytest.mark.parametrize(
    ("states", "name"),
    [
        (snapshot(A, B), "b"),
        (snapshot(A, _degraded(B)), "b"),
        (snapshot(A, _busy(B, 64)), "b"),
        (snapshot(A, _down(B)), "a"),
        (snapshot(A, BackendState(B, Health.HEALTHY, drained=True)), "a"),
        (snapshot(_down(A), _down(B)), None),
        (snapshot(C), None),
    ],
)
def test_requests_that_are_no_inference_go_to_the_first_of_the_chain_that_is_up(
    states: Snapshot, name: str | None
) -> None:
    """Room does not count: they are no load for an engine."""
    found = CHAIN.first_available(states)
    assert (found.name if found else None) == name


def test_the_upstream_model_is_the_backends_own_but_for_an_adapter() -> None:
    """An alias is a name for clients only."""
    item = backend(model="m-a", aliases=("fast",), adapters=("sql",))
    assert [upstream_model(item, name) for name in ("m-a", "fast", "sql", "")] == ["m-a", "m-a", "sql", "m-a"]


@pytest.mark.parametrize(("content_type", "needed"), [("", False), ("vision", True)])
def test_messages_are_read_when_a_rule_looks_at_the_content_type(content_type: str, needed: bool) -> None:
    """The pipeline says so."""
    pipeline = Pipeline([Rule("r", match=Match(content_type=content_type))], [])
    assert pipeline.needs_content_type is needed


# One backend by its name


def _only(states: Snapshot, asked: Asked | None = None, pipeline: Pipeline = RULE) -> Choice | NoChoice:
    return pipeline.only("c", "r", replace(asked or Asked(request(), {}), snapshot=states))


def test_one_backend_by_its_name_whatever_the_rules_say() -> None:
    """Under the rule that is given, with its own model name; no other is a candidate."""
    only_others = Pipeline([Rule("r", backends=("a",), required_capabilities=frozenset({"json_output"}))], ["b"])
    choice = _only(snapshot(A, B, C), pipeline=only_others)
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.rule, choice.upstream_model) == ("c", "r", "m-c")
    assert [candidate.backend for candidate in choice.candidates] == ["c"]


@pytest.mark.parametrize(
    ("state", "tried", "chosen"),
    [
        (_degraded(C), (), True),
        (_down(C), (), False),
        (_busy(C, 63), (), True),
        (_busy(C, 64), (), False),
        (BackendState(C, Health.HEALTHY, paused_until=10.0), (), True),
        (BackendState(C, Health.HEALTHY, paused_until=10.5), (), False),
        (_busy(C, 0), ("a", "b"), True),
        (_busy(C, 0), ("c",), False),
    ],
)
def test_one_backend_by_its_name_must_be_able_to_serve(
    state: BackendState, tried: tuple[str, ...], *, chosen: bool
) -> None:
    """Nobody comes in its place, however idle. It is 10 s, to the end of the pause."""
    asked = Asked(request(), {}, now=10.0, tried=frozenset(tried))
    assert isinstance(_only(snapshot(A, B, state), asked), Choice) is chosen


def test_one_backend_that_is_not_configured_any_more_is_none() -> None:
    """It may have been removed since."""
    assert _only(snapshot(A, B)) == NoChoice("r", (), full=False)


@pytest.mark.parametrize("queue_aware", [True, False])
def test_a_pin_elsewhere_does_not_take_the_place_of_one_backend_by_its_name(queue_aware: bool) -> None:
    """What it holds of the prompt itself is known, for its cache."""
    pipeline = Pipeline([], ["a", "c"], queue_aware=queue_aware)
    pinned = Asked(request(), {}, Affinity(10_000, {"a": 9000, "c": 2000}, 0, 0.0))
    choice = _only(snapshot(A, B, C), pinned, pipeline)
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.matched) == ("c", 2000)
