"""What would become of a request: the same as becomes of it, and nothing is left behind."""

import asyncio
from dataclasses import replace

import pytest

from router_ext.config.sections import AbTest, Budget, KvPinning, QualityGate, RateLimit, RouterConfig, Server, Sessions
from router_ext.engine.explaining import Explanation, request_head
from router_ext.model.decision import Decision
from router_ext.model.rejection import Reason
from router_ext.model.rule import Match, Rule
from router_ext.model.session import Session, SessionMeta
from router_ext.model.snapshot import Health
from router_ext.payload.session_request import owner_of
from tests.fakes.domain import CHAT, backend, head, router
from tests.fakes.rig import BODY, EngineRig

LONG = b'{"model":"m-a","messages":[{"role":"system","content":"' + b"x" * 5000 + b'"},{"role":"user","content":"hi"}]}'
SESSION = "sess_00000000-0000-4000-8000-000000000001"


def pinning(config: RouterConfig) -> RouterConfig:
    """The same with pins."""
    return replace(config, server=replace(config.server, kv_pinning=KvPinning(enabled=True)))


def explain(rig: EngineRig, body: bytes = BODY, path: str = CHAT, **headers: str) -> Explanation:
    """The explanation of a POST; underscores in the names of headers stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return rig.wait(rig.engine.explain(request_head(path, named), body))


def decided(explanation: Explanation) -> Decision:
    """The decision, which must be there."""
    assert explanation.decision is not None, explanation
    return explanation.decision


def test_the_explained_decision_is_the_one_that_is_made_next() -> None:
    """Backend, rule, model, candidates and state; only id and time are those of a request that was sent."""
    config = replace(router(backend("a"), backend("b", model="m-b")), rules=(Rule("r", backends=("b", "a")),))
    rig = EngineRig(pinning(config))
    explained = decided(explain(rig, x_kronaxis_service="s", x_request_id="r-1"))
    rig.forward(head_=head(x_kronaxis_service="s", x_request_id="r-1"))
    made = rig.engine.recent[-1]
    assert (explained.id, made.id) == ("", "t-1")
    assert replace_id(made) == replace_id(explained)
    assert (made.rule, made.backend, made.upstream_model, made.request_id) == ("r", "b", "m-b", "r-1")


def replace_id(decision: Decision) -> tuple[object, ...]:
    """What a decision says beside id and time."""
    return tuple(getattr(decision, name) for name in decision.__struct_fields__ if name not in ("id", "time_s"))


def no_draw() -> float:
    """A source of chance that must not be asked."""
    raise AssertionError("drawn")


def test_nothing_is_left_of_an_explained_request() -> None:
    """No count, no record, no telemetry, no draw, no rate, no reservation, no session, no caller of a test."""
    config = router(backend("a", cost=1.0), backend("b", cost=1.0))
    config = replace(
        config,
        server=replace(config.server, kv_pinning=KvPinning(enabled=True), sessions=Sessions(enabled=True)),
        rules=(Rule("slow", backends=("a",), max_ttft_ms=1),),
        budgets=(Budget("default", 1.0),),
        rate_limits=(RateLimit("default", 1.0, 1),),
        quality_gate=QualityGate(enabled=True, fallback_backend="b", sample_rate=0.5),
        ab_tests=(AbTest("t", Match(service="q"), "a", "b", 50.0),),
    )
    rig = EngineRig(config, draw=no_draw)
    explain(rig)
    explain(rig)
    explain(rig, x_kronaxis_service="q")
    explain(rig, x_kronaxis_session_create="true")
    explain(rig, path="/v1/other")
    explain(rig, b"{")
    told = [name for name in rig.telemetry.__slots__ if getattr(rig.telemetry, name)]
    assert told == []
    assert (list(rig.engine.recent), len(rig.engine.exchanges)) == ([], 0)
    assert rig.in_flight() == {"a": 0, "b": 0}
    assert rig.engine.budgets.reserved("other") == 0
    assert rig.sessions.sessions == {}
    assert rig.engine.experiments._unknown_callers == 0
    assert rig.engine._rate_limits._buckets == {}
    assert explain(rig).rejection is None


def test_a_pin_that_is_told_of_does_not_count_as_used() -> None:
    """The backend that holds the prompt is told with the size; the table keeps its order."""
    rig = EngineRig(pinning(router(backend("a"), backend("b"))))
    rig.engine.set_health("a", Health.DOWN)
    served = rig.forward(LONG)
    rig.engine.first_token(served.metadata["id"])
    rig.engine.set_health("a", Health.HEALTHY)
    pins = rig.engine.caches._memory._pins
    order = list(pins._entries)
    explained = decided(explain(rig, LONG))
    assert explained.backend == "b"
    assert explained.matched is not None
    assert explained.matched > 5000
    assert explained.seen is not None
    assert dict(explained.seen.affinity.matched) == {"b": explained.matched}
    assert list(pins._entries) == order


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"{", {}, Reason.INVALID_JSON),
        (b'{"model":1}', {}, Reason.INVALID_MODEL),
        (BODY, {"x-kronaxis-tier": "x"}, Reason.BAD_HEADER),
        (BODY, {"x-kronaxis-session-create": "true"}, Reason.SESSIONS_DISABLED),
        (BODY, {"content-encoding": "odd"}, Reason.UNSUPPORTED_ENCODING),
    ],
    ids=["json", "model", "header", "session", "encoding"],
)
def test_a_request_that_would_be_refused_says_how(body: bytes, headers: dict[str, str], reason: Reason) -> None:
    """With the very answer that the client would get; no backend is looked at."""
    rig = EngineRig(router(backend()))
    explained = rig.wait(rig.engine.explain(request_head(CHAT, headers), body))
    assert explained.rejection is not None
    assert explained.rejection.reason is reason
    assert (explained.decision, explained.cluster) == (None, "")
    assert rig.refuse(body, head(headers=headers)) == (
        explained.rejection.status,
        explained.rejection.body()["error"],
    )


def test_a_request_without_a_backend_is_refused_with_every_candidate() -> None:
    """At once: the moment for which a live request waits for room is not waited."""
    rig = EngineRig(router(backend("a", room=1)))
    rig.forward()
    explained = explain(rig)
    assert explained.rejection is not None
    assert explained.rejection.reason is Reason.NO_BACKEND
    assert [(item.backend, item.filtered_by) for item in decided(explained).candidates] == [("a", "max_concurrent")]
    assert (decided(explained).rejection, explained.budget) == ("no_backend", "admitted")


def test_a_used_up_rate_is_told() -> None:
    """As of now; a second later there is room again."""
    rig = EngineRig(replace(router(backend()), rate_limits=(RateLimit("default", 1.0, 1),)))
    rig.forward()
    refused = explain(rig).rejection
    assert refused is not None
    assert (refused.reason, refused.retry_after_s) == (Reason.RATE_LIMITED, 1)
    rig.clock.advance(1.0)
    assert explain(rig).rejection is None


@pytest.mark.parametrize(
    ("action", "target", "told", "to"), [("reject", "", "rejected", ""), ("downgrade", "b", "downgraded", "b")]
)
def test_what_the_budget_says_is_told(action: str, target: str, told: str, to: str) -> None:
    """Of a service whose day is spent: nobody serves, or the target of its downgrade."""
    config = router(backend("a", cost=1.0), backend("b", cost=1.0))
    rig = EngineRig(replace(config, budgets=(Budget("s", 0.000001, action, target),)))
    assert explain(rig, x_kronaxis_service="s").budget == "admitted"
    rig.engine.spend.add("s", 5, rig.clock.wall())
    explained = explain(rig, x_kronaxis_service="s")
    assert (explained.budget, decided(explained).backend) == (told, to)
    assert (explained.rejection is not None) == (told == "rejected")


def test_the_place_in_a_test_is_told_and_whether_chance_decides_it() -> None:
    """The variant of a persona is its own for good; without one the request's id decides."""
    test = AbTest("t", Match(), "a", "b", 100.0)
    rig = EngineRig(replace(router(backend("a"), backend("b")), ab_tests=(test,)))
    explained = explain(rig, x_kronaxis_personaid="ann")
    assert explained.assignment is not None
    assert (explained.assignment.test, explained.assignment.variant, explained.by_chance) == ("t", "b", False)
    assert decided(explained).rule == "ab_test"
    assert explain(rig).by_chance


def test_the_chances_of_gate_and_shadow_are_told() -> None:
    """The share of such requests; for the gate 1 where the request brings a schema, and the one behind it."""
    test = AbTest("t", Match(service="s"), "a", "b", 25.0, mode="shadow")
    gate = QualityGate(enabled=True, fallback_backend="b", sample_rate=0.5)
    rig = EngineRig(replace(router(backend("a"), backend("b")), quality_gate=gate, ab_tests=(test,)))
    shadowed = explain(rig, x_kronaxis_service="s")
    assert shadowed.shadow is not None
    assert (shadowed.shadow.test.variant_b, shadowed.shadow.probability) == ("b", 0.25)
    plain = explain(rig)
    assert (plain.shadow, plain.gate and (plain.gate.probability, plain.gate.ask.fallback)) == (None, (0.5, "b"))
    with_schema = explain(rig, x_kronaxis_response_schema='{"type":"object"}')
    assert with_schema.gate is not None
    assert with_schema.gate.probability == 1.0


def with_session(owner: str) -> EngineRig:
    """A router that keeps one session."""
    rig = EngineRig(replace(router(backend()), server=Server(sessions=Sessions(enabled=True))))
    meta = SessionMeta(SESSION, owner, 1.0, 2.0, tokens=40, bytes=30)
    rig.sessions.sessions[SESSION] = Session(meta, (b'{"role":"user","content":"a"}',))
    return rig


def test_a_session_is_read_for_its_owner_and_left_as_it_is() -> None:
    """The prompt that is explained holds its messages."""
    rig = with_session(owner_of({}, ""))
    before = dict(rig.sessions.sessions)
    explained = explain(rig, x_kronaxis_session_id=SESSION)
    assert explained.session is not None
    assert (explained.session.action, explained.session.tokens > 40) == ("continue", True)
    assert decided(explained).request.prompt_bytes > decided(explained).request.body_bytes
    assert rig.sessions.sessions == before
    ends = explain(rig, x_kronaxis_session_id=SESSION, x_kronaxis_session_end="true")
    assert ends.session is not None
    assert ends.session.action == "end"


def test_a_session_of_somebody_else_is_unknown() -> None:
    """As it is for a client; and a store that is away refuses."""
    rig = with_session("somebody")
    refused = explain(rig, x_kronaxis_session_id=SESSION).rejection
    assert refused is not None
    assert refused.reason is Reason.SESSION_NOT_FOUND
    rig.sessions.away = True
    away = explain(rig, x_kronaxis_session_id=SESSION).rejection
    assert away is not None
    assert away.reason is Reason.SESSION_STORE_UNAVAILABLE


def test_a_path_that_is_no_inference_goes_to_the_first_backend() -> None:
    """Whatever its body is; without one it is refused."""
    rig = EngineRig(router(backend("a"), backend("b")))
    assert (explain(rig, b"", "/v1/files").cluster, decided(explain(rig, b"", "/v1/files")).rule) == (
        "backend-a",
        "other",
    )
    for name in ("a", "b"):
        rig.engine.set_health(name, Health.DOWN)
    refused = explain(rig, b"", "/v1/files").rejection
    assert refused is not None
    assert refused.reason is Reason.NO_BACKEND


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("v1", {}),
        ("/a b", {}),
        ("/\ud800", {}),
        ("/" * 8193, {}),
        ("/", {"a b": "c"}),
        ("/", {"": "c"}),
        ("/", {"a": "b\r\nc: d"}),
        ("/", {"a": "\u20ac"}),
        ("/", {"A": "1", "a": "2"}),
        ("/", {f"h{i}": "" for i in range(201)}),
    ],
    ids=["relative", "space", "surrogate", "long", "name", "no-name", "line-end", "wide", "twice", "many"],
)
def test_what_no_request_can_be_is_an_error(path: str, headers: dict[str, str]) -> None:
    """In one sentence that quotes none of it."""
    with pytest.raises(ValueError, match=r"^[A-Z][^\u20ac]+\.$"):
        request_head(path, headers)


def test_explaining_goes_on_beside_live_requests() -> None:
    """Many at once, each over the state of its moment."""
    rig = EngineRig(router(backend("a")))

    async def both() -> list[str]:
        plans = asyncio.gather(*(rig.engine.plan(head(), BODY) for _ in range(5)))
        explained = await asyncio.gather(*(rig.engine.explain(head(), BODY) for _ in range(5)))
        await plans
        return [decided(one).backend for one in explained]

    assert rig.wait(both()) == ["a"] * 5
    assert rig.in_flight() == {"a": 5}
