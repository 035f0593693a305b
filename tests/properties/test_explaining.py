"""What is explained is what happens next, and explaining changes nothing: for any requests in any order."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from router_ext.config.sections import (
    AbTest,
    Budget,
    KvPinning,
    QualityGate,
    RateLimit,
    Server,
    Sessions,
)
from router_ext.engine.answers import refusal
from router_ext.engine.explaining import Explanation, request_head
from router_ext.model.experiment import VARIANT_RULE
from router_ext.model.outcome import Usage
from router_ext.model.rule import Match, Rule
from router_ext.model.snapshot import Health
from router_ext.stream.effects import Answer, Forward
from tests.fakes.domain import CHAT, backend, record, router
from tests.fakes.rig import EngineRig

NAMES = ("a", "b", "c")
CONFIG = replace(
    router(
        backend("a", cost=1.0, room=4),
        backend("b", cost=5.0, room=4, capabilities=("vision",)),
        backend("c", model="m-c", cost=2.0, room=4, adapters=("sql",)),
    ),
    server=Server(kv_pinning=KvPinning(enabled=True), sessions=Sessions(enabled=True)),
    rules=(
        Rule("shops", match=Match(service="shop"), backends=("b", "a"), max_ttft_ms=50),
        Rule("cheap", match=Match(call_type="cheap"), max_cost_1m=3.0),
    ),
    budgets=(Budget("poor", 0.00002, "downgrade", "c"), Budget("broke", 0.00002, "reject", "")),
    rate_limits=(RateLimit("often", 1.0, 2),),
    quality_gate=QualityGate(enabled=True, fallback_backend="b", sample_rate=0.5),
    ab_tests=(AbTest("t", Match(service="tested"), "a", "c", 50.0),),
)


@dataclass(frozen=True)
class Step:
    """A request, and what happens to the router before it."""

    body: bytes
    headers: Mapping[str, str]
    path: str
    health: tuple[str, Health] | None
    pause_s: float
    ends: bool


def _body(model: str, words: int, more: str) -> bytes:
    text = "word " * words
    return f'{{"model":"{model}","messages":[{{"role":"user","content":"{text}"}}]{more}}}'.encode()


STEPS = st.builds(
    Step,
    body=st.builds(
        _body,
        st.sampled_from(["m-a", "m-c", "sql", ""]),
        st.sampled_from([1, 2000]),
        st.sampled_from(["", ',"stream":true', ',"max_tokens":"x"']),
    )
    | st.sampled_from([b"{", b""]),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "x-kronaxis-service": st.sampled_from(["shop", "poor", "broke", "often", "tested"]),
            "x-kronaxis-personaid": st.sampled_from(["ann", "bob"]),
            "x-kronaxis-calltype": st.just("cheap"),
            "x-kronaxis-tier": st.sampled_from(["1", "x"]),
            "x-kronaxis-session-create": st.just("true"),
        },
    ),
    path=st.sampled_from([CHAT, CHAT, "/v1/completions", "/v1/other"]),
    health=st.none() | st.tuples(st.sampled_from(NAMES), st.sampled_from(Health)),
    pause_s=st.sampled_from([0.0, 0.5, 5.0]),
    ends=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_what_is_explained_is_what_happens_and_explaining_changes_nothing(steps: list[Step]) -> None:
    """Backend, rule and model, or status and error; chance alone may send the next request elsewhere."""
    rig = EngineRig(CONFIG)
    for step in steps:
        rig.clock.advance(step.pause_s)
        if step.health is not None:
            rig.engine.set_health(*step.health)
        before = told(rig)
        explained = rig.wait(rig.engine.explain(request_head(step.path, step.headers), step.body))
        assert told(rig) == before
        if waits_for_room(explained):
            continue
        plan = rig.plan(step.body, request_head(step.path, step.headers))
        compare(rig, explained, plan)
        if step.ends and isinstance(plan, Forward):
            rig.engine.first_token(plan.metadata["id"])
            rig.engine.settle(record(plan.metadata["id"], usage=Usage(9, 1, 4)))


def waits_for_room(explained: Explanation) -> bool:
    """A live request waits a moment before it is refused."""
    return explained.rejection is not None and "full" in explained.rejection.message


def compare(rig: EngineRig, explained: Explanation, plan: object) -> None:
    """Holds what happened against what was said of it."""
    if explained.rejection is not None:
        assert isinstance(plan, Answer)
        assert (plan.status, plan.body) == (explained.rejection.status, refusal(explained.rejection).body)
        return
    made, said = rig.engine.recent[-1], explained.decision
    assert said is not None
    if explained.assignment is not None and explained.by_chance:
        assert made.rule == VARIANT_RULE
        return
    assert (made.backend, made.rule, made.upstream_model, made.candidates, made.matched, made.downgraded) == (
        said.backend,
        said.rule,
        said.upstream_model,
        said.candidates,
        said.matched,
        said.downgraded,
    )


def told(rig: EngineRig) -> object:
    """Everything that the router holds and has told, as of today: it notices a new day when somebody asks."""
    rig.engine.spend.totals(rig.clock.wall())
    return state_of((rig.engine, rig.telemetry, rig.sessions.sessions, rig.pairs, rig.dispatcher), {})


def state_of(thing: object, seen: dict[int, int]) -> object:
    """All that can be reached from ``thing`` as tuples; what was met before, as its number."""
    if isinstance(thing, (str, bytes, int, float, type(None))):
        return thing
    if id(thing) in seen:
        return "seen", seen[id(thing)]
    seen[id(thing)] = len(seen)
    match thing:
        case Mapping():
            return tuple((state_of(key, seen), state_of(value, seen)) for key, value in thing.items())
        case set() | frozenset():
            return tuple(sorted(map(repr, thing)))
        case list() | tuple() | deque():
            return tuple(state_of(item, seen) for item in thing)
    names = [*getattr(thing, "__dict__", ()), *_slots(type(thing))]
    return type(thing).__name__, tuple((name, state_of(getattr(thing, name, None), seen)) for name in names)


def _slots(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if not name.startswith("__")]
