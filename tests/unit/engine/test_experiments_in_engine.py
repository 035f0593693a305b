"""A/B tests on live requests: from the caller's headers to the variant's statistics."""

from dataclasses import replace
from typing import Any

import pytest

from router_ext.config.sections import AbTest, Budget, RouterConfig
from router_ext.model.rule import Match
from router_ext.model.snapshot import Health
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head, record
from tests.fakes.rig import BODY, EngineRig
from tests.fakes.session_turns import CREATE, ask, continues, plain, said, with_sessions
from tests.unit.engine.relays import LAST, STREAM, TOKEN, begun, relayed, settled, silent, trio

OF_A, OF_B = {"x-kronaxis-personaid": "user-0"}, {"x-kronaxis-personaid": "user-2"}
"""Callers of the variants of ``cheaper``."""

CHEAPER = AbTest("cheaper", Match(), "c", "b", 50.0)
"""Without it ``a`` serves."""

TOLD_B = {"x-kronaxis-ab-test": "cheaper", "x-kronaxis-ab-variant": "b"}


def with_tests(*tests: AbTest) -> RouterConfig:
    """Three backends that cost $2 a million tokens, asked in order where no test says otherwise."""
    config = trio(*(backend(name, cost=2.0) for name in ("a", "b", "c")))
    return replace(config, ab_tests=tests or (CHEAPER,))


def told(headers: Any) -> dict[str, str]:
    """What an answer's headers say of a test."""
    return {name: value for name, value in headers if "-ab-" in name}


def figures(rig: EngineRig, variant: str) -> dict[str, Any]:
    """One variant's statistics."""
    shown: dict[str, Any] = rig.engine.experiments.report()[0]["variants"][variant]
    return shown


@pytest.mark.parametrize(("caller", "variant", "served_by"), [(OF_A, "a", "c"), (OF_B, "b", "b")])
def test_a_caller_is_served_and_counted_by_its_variant(caller: dict[str, str], variant: str, served_by: str) -> None:
    """From the choice to the cost of the answer: 10 tokens at two micro-dollars."""
    rig = EngineRig(with_tests())
    plan = rig.forward(head_=head(headers=caller))
    assert (plan.metadata["backend"], plan.metadata["rule"]) == (served_by, "ab_test")
    assert told(plan.response_edits.set) == {"x-kronaxis-ab-test": "cheaper", "x-kronaxis-ab-variant": variant}
    rig.engine.settle(record(plan.metadata["id"]))
    shown = figures(rig, variant)
    assert (shown["requests"], shown["answers"], shown["latency_mean_ms"]) == (1, 1, 2_000.0)
    assert (shown["ttft_p95_ms"], shown["output_tokens"], shown["cost_micro_usd"]) == (1_500.0, 1, 20)
    assert rig.telemetry.ab_requests == [("cheaper", variant, False)]
    assignment = rig.telemetry.ends[0].outcome.assignment
    assert assignment is not None
    assert (assignment.variant, assignment.backend) == (variant, served_by)


def test_a_request_whose_body_nobody_sees_takes_part_by_its_headers() -> None:
    """It has no model that a test could ask for."""
    rig = EngineRig(with_tests(replace(CHEAPER, match=Match(service="shop"))))
    plan = rig.forward(None, head(headers={**OF_B, "x-kronaxis-service": "shop"}))
    assert (plan.metadata["backend"], told(plan.response_edits.set)) == ("b", TOLD_B)
    assert rig.forward(None, head(headers=OF_B)).metadata["backend"] == "a"


def test_a_variant_that_is_down_falls_to_the_other_which_is_not_its_statistics() -> None:
    """The client is told, it is counted, and neither variant's figures know of it."""
    rig = EngineRig(with_tests())
    rig.engine.set_health("b", Health.DOWN)
    plan = rig.forward(head_=head(headers=OF_B))
    assert plan.metadata["backend"] == "c"
    assert told(plan.response_edits.set) == {**TOLD_B, "x-kronaxis-ab-fallback": "true"}
    rig.engine.settle(record(plan.metadata["id"]))
    assert [figures(rig, name)["requests"] for name in "ab"] == [0, 0]
    assert [figures(rig, name)["fallbacks"] for name in "ab"] == [0, 1]
    assert rig.telemetry.ab_requests == [("cheaper", "b", True)]


async def test_a_request_that_its_variant_failed_goes_to_the_other() -> None:
    """Not to the first of the chain. The failure is the variant's, the answer nobody's."""
    rig = EngineRig(with_tests())
    rig.dispatcher.answer("c", CannedAnswer())
    request = await begun(rig, head_=head(headers=OF_B))
    answer = await relayed(rig, request)
    settled(rig, request)
    assert answer.headers["x-kronaxis-backend"] == "c"
    assert told(answer.headers.items()) == {**TOLD_B, "x-kronaxis-ab-fallback": "true"}
    assert [(figures(rig, name)["requests"], figures(rig, name)["errors"]) for name in "ab"] == [(0, 0), (1, 1)]
    assert [figures(rig, name)["answers"] for name in "ab"] == [0, 0]


async def test_the_head_of_a_stream_that_the_router_brings_names_the_variant() -> None:
    """The variant's backend is the one that is asked."""
    rig = EngineRig(silent(with_tests()))
    rig.dispatcher.answer("b", event_stream(TOKEN, LAST))
    answer = await relayed(rig, await begun(rig, STREAM, head(headers=OF_B)))
    assert (answer.headers["x-kronaxis-backend"], told(answer.headers.items())) == ("b", TOLD_B)


def test_a_session_stays_with_its_variant() -> None:
    """From the turn that creates it on, for a caller without any other name."""
    rig = EngineRig(with_sessions(with_tests()))
    variants = set()
    for number in range(20):
        first = ask(rig, said("hi"), {**CREATE, "x-request-id": f"r-{number}"}, plain("Hello."))
        next_ = {**continues(first.session_id), "x-request-id": f"s-{number}"}
        second = ask(rig, said("more"), next_, plain("Sure."))
        assert told(first.headers.items()) == told(second.headers.items())
        variants.add(second.headers["x-kronaxis-ab-variant"])
    assert variants == {"a", "b"}


def test_callers_without_a_name_are_told_apart_by_their_requests() -> None:
    """By the id that Envoy gives each, or at all events by being another request."""
    rig = EngineRig(with_tests())
    with_ids = [rig.forward(head_=head(x_request_id=f"r-{n}")).metadata["backend"] for n in range(40)]
    without = [rig.forward().metadata["backend"] for _ in range(40)]
    assert set(with_ids) == set(without) == {"b", "c"}
    assert with_ids == [rig.forward(head_=head(x_request_id=f"r-{n}")).metadata["backend"] for n in range(40)]


def test_a_request_that_a_budget_sends_elsewhere_takes_part_in_no_test() -> None:
    """The cheaper backend serves, whatever the variant: here after a first answer that cost twice the limit."""
    rig = EngineRig(replace(with_tests(), budgets=(Budget("default", 0.00001, "downgrade", "a"),)))
    plans = []
    for _ in range(2):
        plan = rig.forward(head_=head(headers=OF_B))
        rig.engine.settle(record(plan.metadata["id"]))
        plans.append((plan.metadata["backend"], told(plan.response_edits.set)))
    assert plans == [("b", TOLD_B), ("a", {})]
    assert rig.telemetry.ab_requests == [("cheaper", "b", False)]


def test_a_reload_starts_and_stops_tests() -> None:
    """What is open then ends as it began."""
    rig = EngineRig(with_tests(replace(CHEAPER, active=False)))
    assert rig.forward(head_=head(headers=OF_B)).metadata["backend"] == "a"
    rig.engine.configure(with_tests())
    open_request = rig.forward(BODY, head(headers=OF_B)).metadata
    assert open_request["backend"] == "b"
    rig.engine.configure(with_tests(replace(CHEAPER, active=False)))
    assert rig.forward(head_=head(headers=OF_B)).metadata["backend"] == "a"
    rig.engine.settle(record(open_request["id"]))
    assert figures(rig, "b")["requests"] == 1
