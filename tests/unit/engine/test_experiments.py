"""A/B tests: who takes part, in which variant, who serves when that cannot, and what clients are told."""

from typing import Any

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.engine.attempts import Attempt
from router_ext.engine.caches import Caches
from router_ext.engine.configured import Configured
from router_ext.engine.decider import Decider
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.experiments import Experiments, given, key_of
from router_ext.engine.forwarding import forward_inference, relay_head
from router_ext.engine.pool import Pool
from router_ext.engine.turns import OpenTurn
from router_ext.model.decision import Choice, Decision
from router_ext.model.experiment import Assignment
from router_ext.model.request import Caller
from router_ext.model.rule import Match
from router_ext.model.snapshot import Health
from router_ext.payload.inference import BodyLimits, read_inference
from router_ext.routing.pipeline import Pipeline
from tests.fakes.clock import FakeClock
from tests.fakes.domain import CHAT, backend, head, request
from tests.fakes.rig import BODY
from tests.fakes.telemetry import RecordingTelemetry
from tests.unit.engine.experiments import NAMES, OF_B, experiments, split

A_CALLER, B_CALLER = "user-0", "user-2"
"""Callers of variants A and B in the test ``cheaper`` at 50 %: ``tests/unit/routing/test_split.py`` has them, too."""


def variant_of(made: Experiments, key: str) -> str:
    """The variant of a caller of any request."""
    assignment = made.assign(request(), key)
    assert assignment is not None
    return assignment.variant


# Who takes part, and in which variant


def test_a_caller_gets_the_backend_of_its_variant() -> None:
    """And the other one's stands by."""
    made = experiments(split())
    assert made.assign(request(), A_CALLER) == Assignment("cheaper", "a", "a", "b")
    assert made.assign(request(), B_CALLER) == Assignment("cheaper", "b", "b", "a")


@pytest.mark.parametrize("split_pct", [0.0, 10.0, 50.0, 100.0])
def test_the_share_of_variant_b_is_the_percentage(split_pct: float) -> None:
    """Within one percent of 20,000 callers; exactly nobody at 0 and everybody at 100."""
    made = experiments(split(split_pct=split_pct))
    of_b = sum(variant_of(made, f"user-{number}") == "b" for number in range(20_000))
    assert abs(of_b - split_pct / 100 * 20_000) <= (0 if split_pct in (0.0, 100.0) else 200)


def test_a_caller_keeps_its_variant_in_every_process_and_after_a_reload() -> None:
    """Nothing is remembered, and the rest of the test may change."""
    keys = [f"user-{number}" for number in range(100)]
    one, other = experiments(split()), experiments(split(match=Match(model="m-*"), variant_a="c"))
    before = [variant_of(one, key) for key in keys]
    assert before == [variant_of(other, key) for key in keys]
    one.configure([split("first", active=False), split()])
    assert before == [variant_of(one, key) for key in keys]


def test_requests_that_nothing_tells_apart_are_callers_of_their_own() -> None:
    """Else all of them had one variant."""
    made = experiments(split(split_pct=25.0))
    of_b = sum(variant_of(made, "") == "b" for _ in range(20_000))
    assert abs(of_b - 5_000) <= 200


@pytest.mark.parametrize(
    ("match", "takes_part"),
    [
        (Match(), True),
        (Match(service="shop", call_type="sum", tier=2, model="m-*", priority_level="low"), True),
        (Match(service="cart"), False),
        (Match(tier=1), False),
        (Match(model="n-*"), False),
        (Match(content_type="vision"), False),
    ],
)
def test_a_test_is_for_requests_that_match(match: Match, takes_part: bool) -> None:
    """As a rule is."""
    asked = request("m-a", Caller("shop", "sum", "low", 2))
    assert (experiments(split(match=match)).assign(asked, "anna") is not None) == takes_part


def test_the_first_test_that_matches_counts() -> None:
    """In the file's order; a request takes part in one."""
    made = experiments(split("carts", Match(service="cart")), split("all"), split("late"))
    for service, name in (("cart", "carts"), ("shop", "all")):
        assignment = made.assign(request(caller=Caller(service)), "anna")
        assert assignment is not None
        assert assignment.test == name


def test_a_test_that_is_not_active_or_only_looks_on_takes_nobody() -> None:
    """The next one does, if there is one."""
    idle = split("off", active=False), split("shadow", mode="shadow")
    assert experiments().assign(request(), "anna") is None
    assert experiments(*idle).assign(request(), "anna") is None
    assignment = experiments(*idle, split("on")).assign(request(), "anna")
    assert assignment is not None
    assert assignment.test == "on"


def test_the_content_type_is_known_where_only_a_test_asks_for_it() -> None:
    """Without that nobody looks at the messages."""
    plain = RouterConfig(backends=(backend(),))
    tested = RouterConfig(backends=(backend(),), ab_tests=(split(match=Match(content_type="vision")),))
    assert [Configured.of(config, 0).limits.content_type for config in (plain, tested)] == [False, True]


# What a caller is known by


def _turn() -> OpenTurn:
    """A turn that creates its session."""
    body = read_inference(CHAT, Caller(), BODY, "", BodyLimits(1 << 20, content_type=False))
    return OpenTurn("sess_1", "owner", body, (), 0, 0, creates=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("persona", "turn", "headers", "key"),
    [
        ("anna", _turn(), {"x-request-id": "r-1"}, "anna"),
        ("", _turn(), {"x-request-id": "r-1"}, "sess_1"),
        ("", None, {"x-request-id": "r-1"}, "r-1"),
        ("", None, {}, ""),
    ],
)
def test_a_caller_is_its_persona_else_its_session_else_the_request(
    persona: str, turn: OpenTurn | None, headers: dict[str, str], key: str
) -> None:
    """A session has its id from its first turn on, so it does not change its variant with the second."""
    assert key_of(head(headers=headers), Caller(persona_id=persona), turn) == key


# Who serves


def decider() -> tuple[Decider, Pool]:
    """Backends ``a``, ``b`` and ``c`` with room for one request each; without a test ``c`` comes first."""
    pool, clock = Pool(), FakeClock()
    pool.configure([backend(name, room=1) for name in NAMES])
    for name in NAMES:
        pool[name].probed(Health.HEALTHY, clock.now_s, alive=True)
    made = Decider(pool, Caches(), RecordingTelemetry(), clock, id_prefix="t", draw=lambda: 1.0)
    made.configure(Pipeline((), ("c", "a", "b")))
    return made, pool


def down(pool: Pool, name: str) -> None:
    """Probes found it down."""
    pool[name].probed(Health.DOWN, 1000.0, alive=False)


def full(pool: Pool, name: str) -> None:
    """Its only place is taken."""
    pool[name].acquire()


def paused(pool: Pool, name: str) -> None:
    """It asked to be left alone."""
    pool[name].pause(1001.0)


def test_the_variant_serves_whatever_the_rules_prefer() -> None:
    """The record says why."""
    choice = decider()[0].choose_for(OF_B, request(), None)
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.rule) == ("b", "ab_test")
    assert not OF_B.given_to("b").fell_back


@pytest.mark.parametrize("away", [down, full, paused])
def test_a_variant_that_takes_no_request_falls_to_the_other(away: Any) -> None:
    """Down, full or paused; the assignment keeps the caller's variant, and says so."""
    made, pool = decider()
    away(pool, "b")
    choice = made.choose_for(OF_B, request(), None)
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.rule) == ("a", "ab_test")
    assert OF_B.given_to("a") == Assignment("cheaper", "b", "b", "a", fell_back=True)


def test_a_backend_that_failed_the_request_is_not_asked_again() -> None:
    """The other variant is the next."""
    choice = decider()[0].choose_for(OF_B, request(), None, frozenset({"b"}))
    assert isinstance(choice, Choice)
    assert choice.backend.name == "a"


def test_without_either_variant_the_request_goes_the_way_of_others() -> None:
    """It also does without a test."""
    made, pool = decider()
    for assignment in (None, OF_B):
        choice = made.choose_for(assignment, request(), None)
        assert isinstance(choice, Choice)
        assert (choice.backend.name, choice.rule) == (("c", "default") if assignment is None else ("b", "ab_test"))
    down(pool, "a")
    down(pool, "b")
    choice = made.choose_for(OF_B, request(), None)
    assert isinstance(choice, Choice)
    assert (choice.backend.name, choice.rule) == ("c", "default")


def test_a_request_that_went_elsewhere_never_counts_as_the_variants() -> None:
    """Not even when the variant answers after all, as the second to be asked."""
    assert OF_B.is_served_by("b")
    assert not OF_B.is_served_by("a")
    assert not OF_B.given_to("a").is_served_by("b")


@pytest.mark.parametrize(
    ("served_by", "downgraded", "assignment"),
    [("b", False, OF_B), ("a", False, OF_B.given_to("a")), ("a", True, None), ("b", True, None)],
)
def test_a_choice_says_whether_the_request_is_the_variants(
    served_by: str, downgraded: bool, assignment: Assignment | None
) -> None:
    """Where a budget chose the backend the request takes part in no test."""
    choice = Choice(backend(served_by), "r", "m-a", (), downgraded=downgraded)
    assert given(OF_B, choice) == assignment
    assert given(None, choice) is None


# What a client is told


def exchange(assignment: Assignment | None, answered_by: str) -> OpenExchange:
    """A request of one test, at its present backend."""
    _, pool = decider()
    decision = Decision("t-1", 0.0, request(), "ab_test", answered_by, "m-a", ())
    return OpenExchange(Attempt(decision, pool[answered_by], 1000.0), 1000.0, assignment=assignment)


@pytest.mark.parametrize(
    ("assignment", "answered_by", "told"),
    [
        (None, "b", {}),
        (OF_B, "b", {"x-kronaxis-ab-test": "cheaper", "x-kronaxis-ab-variant": "b"}),
        (
            OF_B.given_to("a"),
            "a",
            {"x-kronaxis-ab-test": "cheaper", "x-kronaxis-ab-variant": "b", "x-kronaxis-ab-fallback": "true"},
        ),
        (
            OF_B,
            "c",
            {"x-kronaxis-ab-test": "cheaper", "x-kronaxis-ab-variant": "b", "x-kronaxis-ab-fallback": "true"},
        ),
    ],
)
def test_an_answer_names_test_and_variant(
    assignment: Assignment | None, answered_by: str, told: dict[str, str]
) -> None:
    """Whether Envoy passes it on or the router brings it; another backend's answer in the variant's place says so."""
    asked = exchange(assignment, answered_by)
    passed_on = forward_inference(head(), None, asked, 60.0).response_edits
    brought = relay_head(200, (), asked).edits
    for edits in (passed_on, brought):
        assert {name: value for name, value in edits.set if "-ab-" in name} == told
