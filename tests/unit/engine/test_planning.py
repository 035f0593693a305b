"""From a request to its plan."""

import gzip
from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig, Server
from router_ext.model.backend import BackendType, Endpoint
from router_ext.model.request import Caller
from router_ext.model.rule import Match, Rule
from router_ext.model.snapshot import Health
from router_ext.stream.effects import Answer, HeaderEdits
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig


def _rig(*backends: object, **changes: object) -> EngineRig:
    config = router(*(backends or (backend(),)))  # type: ignore[arg-type]
    return EngineRig(replace(config, **changes))  # type: ignore[arg-type]


def test_a_request_is_sent_to_its_cluster_with_a_time_limit() -> None:
    """120 s by default for an answer that is not streamed; the decision's short form goes into the metadata."""
    plan = _rig().forward(head_=head(x_kronaxis_service="shop"))
    assert plan.edits == HeaderEdits(
        (("x-kronaxis-cluster", "backend-a"), ("x-envoy-upstream-rq-timeout-ms", "120000")), ("x-kronaxis-service",)
    )
    assert plan.body is None
    assert plan.metadata == {"id": "t-1", "rule": "default", "backend": "a", "service": "shop"}
    assert plan.response_edits == HeaderEdits((("x-kronaxis-backend", "a"), ("x-kronaxis-rule", "default")))
    assert (plan.streaming, plan.watch) == (False, True)


def test_a_stream_has_no_time_limit() -> None:
    """It may last as long as its pieces keep coming."""
    plan = _rig().forward(b'{"model":"m-a","stream":true}')
    assert plan.edits.set == (("x-kronaxis-cluster", "backend-a"),)
    assert plan.streaming


def test_no_header_of_the_product_reaches_a_backend() -> None:
    """Nor does ``accept-encoding``: Envoy reads the usage from the answer and does not decompress."""
    removed = {"x-kronaxis-cluster": "evil", "x-kronaxis-tier": "1", "x-kronaxis-new": "?", "accept-encoding": "gzip"}
    for path in ("/v1/chat/completions", "/other"):
        plan = _rig().forward(head_=head(path, headers={**removed, "accept": "*"}))
        assert set(plan.edits.remove) == removed.keys()


def test_another_model_name_is_written_into_the_body() -> None:
    """Compressed bodies lose their coding then, and only then."""
    rig, packed = _rig(), head(content_encoding="gzip")
    assert rig.forward(b'{"model":"x","n":1}').body == b'{"model":"m-a","n":1}'
    changed = rig.forward(gzip.compress(b'{"model":"x"}', mtime=0), packed)
    assert (changed.body, changed.edits.remove) == (b'{"model":"m-a"}', ("content-encoding",))
    kept = rig.forward(gzip.compress(b'{"model":"m-a"}', mtime=0), packed)
    assert (kept.body, kept.edits.remove) == (None, ())


KEY_HEADERS = {"authorization": "Bearer c", "x-api-key": "c", "api-key": "c", "x-goog-api-key": "c"}


@pytest.mark.parametrize(
    ("engine", "name", "value"),
    [
        (BackendType.OPENAI, "authorization", "Bearer k"),
        (BackendType.GEMINI, "authorization", "Bearer k"),
        (BackendType.VLLM, "authorization", "Bearer k"),
        (BackendType.ANTHROPIC, "x-api-key", "k"),
    ],
)
def test_a_backend_with_a_key_gets_it_and_none_of_the_callers(engine: BackendType, name: str, value: str) -> None:
    """In the header that its type reads."""
    plan = _rig(backend(engine=engine, key="k")).forward(head_=head(headers=KEY_HEADERS))
    assert (name, value) in plan.edits.set
    assert set(plan.edits.remove) == KEY_HEADERS.keys() - {name}


def test_a_backend_without_a_key_gets_the_callers_headers_as_they_came() -> None:
    """And never another backend's key."""
    rig = _rig(backend("a"), backend("b", key="k-of-b"))
    plan = rig.forward(head_=head(headers=KEY_HEADERS))
    assert plan.metadata["backend"] == "a"
    assert plan.edits.remove == ()
    assert "k-of-b" not in repr(plan)


@pytest.mark.parametrize(
    ("engine", "url", "sent"),
    [
        (BackendType.VLLM, Endpoint("http", "h", 80), None),
        (BackendType.VLLM, Endpoint("http", "h", 80, "/api"), "/api/v1/chat/completions?a=/v1/"),
        (BackendType.OPENAI, Endpoint("https", "h", 443, "/v1"), None),
        (BackendType.GEMINI, Endpoint("https", "h", 443), "/v1beta/openai/chat/completions?a=/v1/"),
        (BackendType.GEMINI, Endpoint("https", "h", 443, "/x"), "/x/v1beta/openai/chat/completions?a=/v1/"),
    ],
)
def test_the_path_is_rewritten_for_the_backend(engine: BackendType, url: Endpoint, sent: str | None) -> None:
    """Its query stays as it is; a path that needs no change is not set."""
    plan = _rig(backend(engine=engine, endpoint=url)).forward(head_=head("/v1/chat/completions?a=/v1/"))
    assert dict(plan.edits.set).get(":path") == sent


@pytest.mark.parametrize("name", ["x_kronaxis_session_id", "x_kronaxis_session_create", "x_kronaxis_session_end"])
def test_session_headers_are_refused_while_sessions_are_off(name: str) -> None:
    """A conversation that is not kept must not look as if it were."""
    rig = _rig()
    status, error = rig.refuse(head_=head(headers={name.replace("_", "-"): "true"}))
    assert (status, error["code"]) == (400, "sessions_disabled")
    assert rig.in_flight() == {"a": 0}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("x-kronaxis-service", "s" * 128, "s" * 129),
        ("x-kronaxis-service", "a b~!", "a\x7f"),
        ("x-kronaxis-calltype", "", "é"),
        ("x-kronaxis-priority", "high", "high\n"),
        ("x-kronaxis-personaid", "p", "\x00"),
        ("x-kronaxis-tier", "999999999", "1000000000"),
        ("x-kronaxis-tier", " 2 ", "-1"),
        ("x-kronaxis-tier", "", "1.5"),
        ("x-kronaxis-tier", "007", "²"),
    ],
)
def test_a_callers_header_is_short_and_printable(name: str, good: str, bad: str) -> None:
    """Texts of up to 128 printable ASCII characters, a tier of up to nine digits."""
    rig = _rig()
    rig.forward(head_=head(headers={name: good}))
    status, error = rig.refuse(head_=head(headers={name: bad}))
    assert (status, error["code"], error["param"]) == (400, "bad_header", name)


def test_rules_see_the_callers_headers() -> None:
    """Service, call type, priority, tier and persona."""
    match = Match(service="shop", call_type="chat", tier=2, priority_level="high")
    rig = _rig(backend("a"), backend("b", model="m-a"), rules=(Rule("r", match=match, backends=("b",)),))
    sent = head(
        x_kronaxis_service="shop",
        x_kronaxis_calltype="chat",
        x_kronaxis_priority="high",
        x_kronaxis_tier="2",
        x_kronaxis_personaid="p",
    )
    assert rig.forward(head_=sent).metadata["backend"] == "b"
    assert rig.telemetry.decisions[0].request.caller == Caller("shop", "chat", "high", 2, "p")
    assert rig.forward().metadata["backend"] == "a"


def test_images_are_looked_for_when_a_backend_declares_vision() -> None:
    """No rule is needed for that."""
    image = b'{"messages":[{"content":[{"type":"image_url"}]}]}'
    rig = _rig(backend("a"), backend("b", capabilities=("vision",)))
    assert rig.forward(image).metadata["backend"] == "b"
    assert _rig(backend("a"), backend("b")).forward(image).metadata["backend"] == "a"


def test_a_request_that_nobody_can_serve_is_refused_and_recorded() -> None:
    """503 with a time to come back after; the record says why each candidate was left out."""
    rig = _rig()
    rig.engine.set_health("a", Health.DOWN)
    plan = rig.plan()
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)) == (503, {"content-type": "application/json", "retry-after": "5"})
    (decision,) = rig.engine.recent
    assert (decision.backend, decision.rejection, decision.rule) == ("", "no_backend", "default")
    assert [(item.backend, item.reason) for item in decision.candidates] == [("a", "is down")]
    assert [rejection.reason for _, rejection in rig.telemetry.refusals] == ["no_backend"]
    assert rig.telemetry.decisions == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [(b"{", 400, "invalid_json"), (b"", 400, "invalid_json"), (b" " * 101, 413, "body_too_large")],
)
def test_a_body_that_cannot_be_read_is_refused(body: bytes, status: int, code: str) -> None:
    """Nothing is counted as in flight."""
    rig = EngineRig(replace(router(backend()), server=Server(max_body_bytes=100)))
    answer, error = rig.refuse(body)
    assert (answer, error["code"]) == (status, code)
    assert rig.in_flight() == {"a": 0}


def test_a_decision_without_the_body_is_counted() -> None:
    """Headers must do; the body goes as it is, under the time limit of answers that are not streamed."""
    rig = _rig()
    plan = rig.forward(None)
    assert (plan.body, plan.metadata["backend"]) == (None, "a")
    assert rig.telemetry.blind_decisions == 1
    rig.forward()
    assert rig.telemetry.blind_decisions == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("POST", "/tokenize"), ("GET", "/v1/chat/completions"), ("POST", "/v1/models"), ("HEAD", "/")],
)
def test_what_is_no_inference_passes_without_a_look_at_its_body(method: str, path: str) -> None:
    """To the first backend that is up; without its key, and the caller's own credentials stay."""
    rig = _rig(backend("a", key="k"), backend("b"))
    plan = rig.forward(b"", head(path, method, KEY_HEADERS))
    assert plan.edits == HeaderEdits((("x-kronaxis-cluster", "backend-a"),))
    assert (plan.watch, plan.metadata["rule"]) == (False, "other")


def test_an_endless_path_is_cut_in_the_record() -> None:
    """256 characters are kept; the request itself goes on with all of them."""
    rig = _rig()
    rig.forward(b"", head("/" + "x" * 5000, "GET"))
    assert len(rig.engine.recent[0].request.path) == 256


def test_without_any_backend_up_other_requests_are_refused() -> None:
    """As inference requests are."""
    rig = _rig()
    rig.engine.set_health("a", Health.DOWN)
    assert rig.refuse(b"", head("/health", "GET"))[0] == 503


def test_every_decision_has_an_id_of_its_own() -> None:
    """The prefix tells processes apart."""
    rig = _rig()
    assert [rig.forward(BODY).metadata["id"] for _ in range(3)] == ["t-1", "t-2", "t-3"]


def test_only_the_last_decisions_are_kept() -> None:
    """A thousand, for explanation."""
    rig = EngineRig(router(backend(room=2000)))
    for _ in range(1001):
        rig.forward()
    assert (len(rig.engine.recent), rig.engine.recent[0].id) == (1000, "t-2")


def test_a_new_configuration_is_used_at_once() -> None:
    """Its body limit, rules, chain and backends."""
    rig = _rig()
    rig.engine.configure(RouterConfig(backends=(backend("b", model="m-b"),), server=Server(max_body_bytes=20)))
    assert rig.refuse()[0] == 413
    assert rig.refuse(b"{}")[0] == 503
