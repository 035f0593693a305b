"""Decisions in the admin API: the last ones by filter, and what would become of a request."""

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.explain import EngineExplains, explain_routes
from router_ext.admin.status import Status
from router_ext.model.rule import Rule
from router_ext.v1 import decision_pb2, decisions_pb2
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig


class DecisionRig:
    """An engine with two backends and a rule behind the admin application."""

    def __init__(self) -> None:
        config = router(backend("a"), backend("b"))
        self.rig = EngineRig(replace(config, rules=(Rule("r", backends=("b",)),)))
        engine = self.rig.engine
        status = Status(
            snapshot=engine.pool.snapshot,
            decisions=lambda: engine.recent,
            is_ready=lambda: True,
            uptime_s=lambda: 1.0,
            registry=CollectorRegistry(),
        )
        self.app = admin_app(status, Access(None, exposed=False), explain_routes(EngineExplains(engine)))
        self.client = TestClient(self.app, base_url="http://127.0.0.1")

    def serve(self, **headers: str) -> None:
        """A request that is routed."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.rig.forward(head_=head(headers=named))

    def decisions(self, query: str = "") -> list[dict[str, Any]]:
        """What the API tells."""
        found: list[dict[str, Any]] = self.client.get(f"/api/decisions{query}").json()["decisions"]
        return found

    def explain(self, asked: object) -> tuple[int, Any]:
        """Status and body."""
        answer = self.client.post("/api/explain", json=asked)
        return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["t-3", "t-2", "t-1"]),
        ("?limit=2", ["t-3", "t-2"]),
        ("?request_id=req-1", ["t-1"]),
        ("?request_id=t-2", ["t-2"]),
        ("?service=s", ["t-3", "t-1"]),
        ("?service=s&limit=1", ["t-3"]),
        ("?rule=r&backend=b", ["t-3", "t-2", "t-1"]),
        ("?rule=default", []),
        ("?backend=a", []),
    ],
)
def test_decisions_are_found_by_what_they_are_asked_for(query: str, ids: list[str]) -> None:
    """Newest first; the limit counts those that match."""
    run = DecisionRig()
    run.serve(x_kronaxis_service="s", x_request_id="req-1")
    run.serve(x_request_id="req-2")
    run.serve(x_kronaxis_service="s")
    assert [item["id"] for item in run.decisions(query)] == ids


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?limit=x", "?rule=" + "x" * 257])
def test_a_question_out_of_bounds_is_refused(query: str) -> None:
    """Between 1 and 1,000 decisions, by texts of up to 256 characters."""
    assert DecisionRig().client.get(f"/api/decisions{query}").status_code == 422


def test_an_odd_request_id_is_not_kept() -> None:
    """One that is too long, or holds what is no printable ASCII."""
    run = DecisionRig()
    run.serve(x_request_id="x" * 128)
    run.serve(x_request_id="x" * 129)
    run.serve(x_request_id="a\tb")
    run.serve(x_request_id="\xe9")
    assert [item.get("requestId", "") for item in run.decisions()] == ["", "", "", "x" * 128]


def test_a_request_is_explained_with_a_body_as_object_or_text() -> None:
    """With the decision as it is told of those that were made; nothing is kept of it."""
    run = DecisionRig()
    as_object = run.explain({"body": {"model": "m-a", "messages": []}, "headers": {"X-Kronaxis-Service": "s"}})
    assert as_object[0] == 200
    explained = as_object[1]
    assert (explained["cluster"], explained["budget"]) == ("backend-b", "admitted")
    assert (explained["decision"]["rule"], explained["decision"]["request"]["service"]) == ("r", "s")
    as_text = run.explain({"body": BODY.decode()})
    assert as_text[1]["decision"]["backend"] == "b"
    assert run.decisions() == []


def test_a_refusal_is_an_explanation_too() -> None:
    """The answer is 200 and holds what the client would get."""
    status, explained = DecisionRig().explain({"body": "{"})
    assert (status, explained["refusal"]["status"], explained["refusal"]["code"]) == (200, 400, "invalid_json")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 422),
        ({"body": 1}, 422),
        ({"body": "{}", "path": "v1"}, 422),
        ({"body": "{}", "path": "/\u20ac"}, 422),
        ({"body": "{}", "more": 1}, 422),
        ({"body": "{}", "headers": {"a": 1}}, 422),
        ({"body": "{}", "headers": {"a b": ""}}, 400),
        ({"body": "{}", "headers": {"a": "\u20ac"}}, 400),
        ({"body": "{}", "headers": {"a": "1", "A": "2"}}, 400),
    ],
    ids=["empty", "number", "relative", "wide-path", "unknown", "type", "name", "wide", "twice"],
)
def test_what_is_no_request_is_refused(asked: object, status: int) -> None:
    """By the form of the question, or as a request that HTTP does not allow."""
    assert DecisionRig().explain(asked)[0] == status


@pytest.mark.parametrize(
    "body",
    [
        '{"body": {"model": NaN}}',
        '{"body": {"n": 1' + "0" * 400 + "}}",
        '{"body": {"model": "\\ud800"}}',
        '{"body": "\\ud800"}',
        '{"body": ' + '{"a":' * 600 + "1" + "}" * 600 + "}",
        '{"body": {"model": "m"}, "headers": {"\\ud800": ""}}',
        '{"body": {"model": "m"}, "headers": {"x-request-id": "\\u00e9"}}',
    ],
    ids=["nan", "digits", "surrogate", "surrogate-text", "deep", "surrogate-header", "latin"],
)
def test_a_hostile_body_is_answered(body: str) -> None:
    """With an explanation or an error of the caller, never with one of the router."""
    client = TestClient(DecisionRig().app, base_url="http://127.0.0.1", raise_server_exceptions=True)
    answer = client.post("/api/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 422)


def test_the_document_has_every_field_of_the_contract() -> None:
    """A field that is added to the protocol is described here, too."""
    pairs: dict[str, type[Message]] = {
        "ShownExplanation": decisions_pb2.ExplainResponse,
        "ShownRefusal": decisions_pb2.Refusal,
        "ShownAbTest": decisions_pb2.AbTest,
        "ShownGate": decisions_pb2.Gate,
        "ShownShadow": decisions_pb2.Shadow,
        "ShownSession": decisions_pb2.Session,
        "ShownDecision": decision_pb2.Decision,
        "ShownRequest": decision_pb2.RequestFacts,
        "ShownCandidate": decision_pb2.Candidate,
        "ShownScore": decision_pb2.Score,
        "ShownPin": decision_pb2.Pin,
        "ShownSeen": decision_pb2.Seen,
        "ShownCaches": decision_pb2.Caches,
        "ShownHeld": decision_pb2.Held,
        "ShownState": decision_pb2.BackendState,
        "ShownPrefill": decision_pb2.Prefill,
        "ShownTtft": decision_pb2.Ttft,
    }
    schemas = DecisionRig().app.openapi()["components"]["schemas"]
    for shown, message in pairs.items():
        assert set(schemas[shown]["properties"]) == {field.json_name for field in message.DESCRIPTOR.fields}, shown
