"""Changes of the configuration through the admin API."""

from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from router_ext.model.snapshot import Health
from tests.unit.admin.change_rig import ChangeRig

C: dict[str, Any] = {"name": "c", "url": "http://c:8000", "type": "vllm", "model_name": "m"}


@pytest.fixture
def rig(tmp_path: Path) -> ChangeRig:
    """Two backends, one rule and one budget, all of the file."""
    return ChangeRig(tmp_path)


def names(rig: ChangeRig) -> list[tuple[str, str]]:
    """Backends and where they come from."""
    return [(item["name"], item["origin"]) for item in rig.ask("GET", "/api/backends")[1]["backends"]]


def test_a_backend_is_added_and_removed(rig: ChangeRig) -> None:
    """The answers say what was there before and after."""
    status, body = rig.ask("POST", "/api/backends", {**C, "api_key": "env:C_API_KEY", "max_concurrent": 3})
    assert (status, body["changed"], body["dry_run"], body["before"]) == (201, True, False, None)
    after = body["after"]
    assert (after["name"], after["api_key"], after["max_concurrent"], after["origin"]) == (
        "c",
        "env:C_API_KEY",
        3,
        "api",
    )
    assert names(rig) == [("a", "file"), ("b", "file"), ("c", "api")]
    assert set(rig.pool.slots()) == {"a", "b", "c"}
    status, body = rig.ask("DELETE", "/api/backends/c")
    assert (status, body["changed"], body["before"], body["after"]) == (200, True, after, None)
    assert names(rig) == [("a", "file"), ("b", "file")]
    assert rig.audit.results == [("add_backend", "changed"), ("remove_backend", "changed")]


DRY_RUNS: list[tuple[str, str, object]] = [
    ("POST", "/api/backends", C),
    ("POST", "/api/backends/a/drain", None),
    ("POST", "/api/rules", {"name": "r", "backends": ["a"]}),
    ("PUT", "/api/rules/first", {"backends": ["a"]}),
    ("DELETE", "/api/rules/first", None),
    ("PUT", "/api/budgets/shop", {"daily_limit_usd": 1}),
]


@pytest.mark.parametrize(("method", "path", "body"), DRY_RUNS, ids=[f"{method} {path}" for method, path, _ in DRY_RUNS])
def test_a_dry_run_changes_nothing_and_says_what_it_would(rig: ChangeRig, method: str, path: str, body: object) -> None:
    """Neither what runs nor what is on disk."""
    before = rig.ask("GET", "/api/config")
    status, answer = rig.ask(method, f"{path}?dry_run=true", body)
    assert status in (200, 201)
    assert (answer["changed"], answer["dry_run"]) == (True, True)
    assert answer["before"] != answer["after"]
    assert rig.ask("GET", "/api/config") == before
    assert rig.kept == b""
    assert [result for _, result in rig.audit.results] == ["dry_run"]


REFUSED: list[tuple[str, str, object, int, str]] = [
    ("POST", "/api/backends", {**C, "name": "a"}, 409, "backend_exists"),
    ("POST", "/api/backends", {**C, "url": "nonsense"}, 422, "invalid_config"),
    ("POST", "/api/backends", {**C, "url": "http://metadata.example.org"}, 422, "forbidden_target"),
    ("POST", "/api/backends", {**C, "api_key": "sk-4242"}, 422, "invalid_config"),
    ("POST", "/api/backends", {**C, "api_key": "env:HOME"}, 422, "invalid_config"),
    ("POST", "/api/backends", {**C, "model_name": "env:B_API_KEY"}, 422, "invalid_config"),
    ("POST", "/api/backends", {**C, "type": "nothing"}, 422, "invalid_request"),
    ("POST", "/api/backends", {**C, "url_": "x"}, 422, "invalid_request"),
    ("POST", "/api/backends", [], 422, "invalid_request"),
    ("DELETE", "/api/backends/nothing", None, 404, "backend_not_found"),
    ("DELETE", "/api/backends/b", None, 409, "in_use"),
    ("POST", "/api/backends/nothing/drain", None, 404, "backend_not_found"),
    ("POST", "/api/backends/nothing/undrain", None, 404, "backend_not_found"),
    ("POST", "/api/rules", {"name": "first", "backends": ["a"]}, 409, "rule_exists"),
    ("POST", "/api/rules", {"name": "r", "backends": ["nothing"]}, 422, "invalid_config"),
    ("POST", "/api/rules", {"name": "r", "backends": []}, 422, "invalid_request"),
    ("POST", "/api/rules", {"name": ".", "backends": ["a"]}, 422, "invalid_request"),
    ("POST", "/api/rules", {"name": "..", "backends": ["a"]}, 422, "invalid_request"),
    ("PUT", "/api/budgets/%2E", {"daily_limit_usd": 1}, 422, "invalid_request"),
    ("PUT", "/api/budgets/%2E%2E", {"daily_limit_usd": 1}, 422, "invalid_request"),
    ("PUT", "/api/budgets/", {"daily_limit_usd": 1}, 422, "invalid_config"),
    ("PUT", "/api/rules/nothing", {"backends": ["a"]}, 404, "rule_not_found"),
    ("DELETE", "/api/rules/nothing", None, 404, "rule_not_found"),
    ("PUT", "/api/budgets/shop", {"daily_limit_usd": 1, "action": "downgrade"}, 422, "invalid_config"),
    ("PUT", "/api/budgets/shop", {"daily_limit_usd": 0}, 422, "invalid_request"),
    ("DELETE", "/api/budgets/shop", None, 404, "budget_not_found"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    REFUSED,
    ids=[f"{number} {method} {path} {code}" for number, (method, path, _, _, code) in enumerate(REFUSED)],
)
def test_what_does_not_fit_changes_nothing(
    rig: ChangeRig, method: str, path: str, body: object, status: int, code: str
) -> None:
    """It is told, and what runs stays as it was, on disk too."""
    before = rig.ask("GET", "/api/config")
    assert rig.error(method, path, body) == (status, code)
    assert rig.ask("GET", "/api/config") == before
    assert rig.kept == b""
    assert [result for _, result in rig.audit.results] == ["refused"]


@pytest.mark.parametrize("query", ["dry-run=true", "dryrun=true", "DRY_RUN=true", "dry_run=true&dry_run=false", "x"])
def test_a_mistyped_dry_run_is_no_change(rig: ChangeRig, query: str) -> None:
    """Whoever wants to try something must not do it for a slip of the finger."""
    for method, path, body in DRY_RUNS:
        assert rig.error(method, f"{path}?{query}", body) == (422, "invalid_request")
    assert rig.error("POST", f"/api/config/reload?{query}") == (422, "invalid_request")
    assert rig.kept == b""
    assert {result for _, result in rig.audit.results} == {"refused"}


def test_requests_that_only_ask_may_have_any_parameter(rig: ChangeRig) -> None:
    """As probes and proxies add them."""
    assert [rig.ask("GET", f"{path}?x=1")[0] for path in ("/health", "/api/backends")] == [200, 200]


@pytest.mark.parametrize("priority", [True, "5", 1.5, [1]], ids=["flag", "text", "fraction", "list"])
def test_a_value_of_another_kind_is_refused_as_in_the_file(rig: ChangeRig, priority: object) -> None:
    """It is not made fit."""
    spec = {"name": "r", "backends": ["a"], "priority": priority}
    assert rig.error("POST", "/api/rules", spec) == (422, "invalid_request")


@pytest.mark.parametrize("end", ["%0A", "%0D", "%0D%0A", "%00", "%C2%85", "%E2%80%A8"])
def test_a_name_with_a_line_end_is_not_the_name_without_it(rig: ChangeRig, end: str) -> None:
    """There is no such path, whatever would match it."""
    for method, path in (("DELETE", "rules/first"), ("POST", "backends/a/drain"), ("POST", "config/reload")):
        assert rig.error(method, f"/api/{path}{end}") == (404, "not_found")
    assert rig.error("PUT", f"/api/budgets/shop{end}", {"daily_limit_usd": 1}) == (404, "not_found")
    assert rig.kept == b""


def test_a_backend_that_something_needs_stays_and_the_answer_says_what_needs_it(rig: ChangeRig) -> None:
    """Every reference with its place."""
    status, body = rig.ask("DELETE", "/api/backends/b")
    assert status == 409
    assert [problem["path"] for problem in body["error"]["problems"]] == ["rules[0].backends[0]"]


def test_when_a_change_cannot_be_taken_over_nothing_has_changed(rig: ChangeRig) -> None:
    """The answer says why and quotes no path of the machine; the audit says all."""
    rig.fail = OSError(ENOSPC, "No space left on device", "/envoy")
    status, body = rig.ask("POST", "/api/backends", C)
    assert (status, body["error"]["code"]) == (503, "not_applied")
    assert "(No space left on device); nothing has changed" in body["error"]["message"]
    assert "/envoy" not in body["error"]["message"]
    assert rig.audit.told[0]["result"] == "failed"
    assert "/envoy" in str(rig.audit.told[0]["cause"])
    rig.fail = None
    assert names(rig) == [("a", "file"), ("b", "file")]
    assert rig.kept == b""


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/api/backends/a"), ("POST", "/api/backends/a/drain")])
def test_a_broken_file_of_changes_is_named_and_not_what_somebody_asked_for(
    rig: ChangeRig, method: str, path: str
) -> None:
    """Nothing needs the backend, and nothing about the request is wrong: an operator has to mend the file."""
    rig.ask("POST", "/api/backends/b/drain")
    (rig.file.parent / "data" / "changes.json").write_text("{")
    status, body = rig.ask(method, path)
    assert (status, body["error"]["code"], body["error"]["param"]) == (503, "changes_unusable", "changes.json")
    assert "is broken" in body["error"]["problems"][0]["message"]
    assert rig.audit.results[-1][1] == "failed"
    assert [item["drained"] for item in rig.ask("GET", "/api/backends")[1]["backends"]] == [False, True]


def test_a_backend_is_drained_and_gets_requests_again(rig: ChangeRig) -> None:
    """What is so already is no change."""
    changed = [
        rig.ask("POST", f"/api/backends/a/{path}")[1]["changed"] for path in ("undrain", "drain", "drain", "undrain")
    ]
    assert changed == [False, True, False, True]
    assert [result for _, result in rig.audit.results] == ["unchanged", "changed", "unchanged", "changed"]


def test_a_drained_backend_is_shown_as_one(rig: ChangeRig) -> None:
    """In every place that tells of backends."""
    rig.ask("POST", "/api/backends/a/drain")
    assert [item["drained"] for item in rig.ask("GET", "/api/backends")[1]["backends"]] == [True, False]
    assert [item["drained"] for item in rig.ask("GET", "/api/queue")[1]["queues"]] == [True, False]
    assert rig.ask("GET", "/api/config")[1]["changes"]["drained"] == ["a"]
    assert [item["drained"] for item in rig.ask("GET", "/health")[1]["backends"]] == [True, False]


def test_a_router_whose_backends_are_all_down_or_drained_is_not_well(rig: ChangeRig) -> None:
    """Whoever watches it must learn that no request can be served; a is up here, and b is down."""
    rig.pool["a"].probed(Health.HEALTHY, 0.0, alive=True)
    assert rig.ask("GET", "/health")[1]["status"] == "ok"
    rig.ask("POST", "/api/backends/a/drain")
    assert rig.ask("GET", "/health")[1]["status"] == "no_backend"


def test_rules_are_added_replaced_and_removed(rig: ChangeRig) -> None:
    """A rule of the file that is replaced keeps its place. A name may hold anything that a URL can carry."""
    rule = {"name": "team/a b?", "priority": 2, "match": {"model": "m*"}, "backends": ["a"]}
    assert rig.ask("POST", "/api/rules", rule)[0] == 201
    status, body = rig.ask("PUT", "/api/rules/first", {"backends": ["a", "b"], "max_ttft_ms": 500})
    assert (status, body["before"]["origin"], body["after"]["origin"]) == (200, "file", "api")
    shown = rig.ask("GET", "/api/rules")[1]["rules"]
    assert [(item["name"], item["origin"], item["priority"], item["max_ttft_ms"]) for item in shown] == [
        ("first", "api", 0, 500),
        ("team/a b?", "api", 2, 0),
    ]
    assert rig.ask("DELETE", "/api/rules/team%2Fa%20b%3F")[0] == 200
    assert rig.ask("DELETE", "/api/rules/first")[1]["after"] is None
    assert rig.ask("GET", "/api/rules")[1] == {"rules": []}


def test_a_budget_is_set_and_given_back_to_the_file(rig: ChangeRig) -> None:
    """DELETE takes away what the API has set, not the budget."""
    status, body = rig.ask("PUT", "/api/budgets/shop", {"daily_limit_usd": 1.5})
    assert (status, body["before"]["daily_limit_usd"], body["after"]["daily_limit_usd"]) == (200, 5.0, 1.5)
    status, body = rig.ask("DELETE", "/api/budgets/shop")
    assert (status, body["after"]["daily_limit_usd"], body["after"]["origin"]) == (200, 5.0, "file")
    assert rig.ask("PUT", "/api/budgets/team%2Fa", {"daily_limit_usd": 1})[1]["before"] is None
    assert rig.ask("DELETE", "/api/budgets/team%2Fa")[1]["after"] is None


def test_warnings_of_a_change_are_in_its_answer(rig: ChangeRig) -> None:
    """Only those that the configuration did not have before."""
    _, body = rig.ask("PUT", "/api/rules/first", {"backends": ["b"]})
    assert [(item["path"], item["message"]) for item in body["warnings"]] == [
        ("rules[0]", "the admin API has replaced rule 'first'")
    ]


def test_the_audit_says_who_did_what_without_any_secret(rig: ChangeRig) -> None:
    """Before and after as the answers have them."""
    rig.ask("POST", "/api/backends", {**C, "api_key": "env:C_API_KEY"})
    rig.ask("POST", "/api/backends", {**C, "name": "d", "api_key": "sk-4242"})
    rig.ask("POST", "/api/backends/a/drain")
    first, second, third = rig.audit.told
    assert (first["who"], first["peer"], first["target"], first["dry_run"]) == ("loopback", "testclient", "c", False)
    assert (first["before"], first["after"]["api_key"]) == (None, "env:C_API_KEY")
    assert (second["result"], second["code"], set(second) & {"before", "after"}) == ("refused", "invalid_config", set())
    assert (third["before"]["drained"], third["after"]["drained"]) == (False, True)
    assert "Secret" not in str(rig.audit.told)
    assert "4242" not in str(rig.audit.told)


@pytest.mark.parametrize("path", ["/api/backends", "/api/config", "/api/rules", "/api/queue"])
def test_no_page_holds_a_secret(rig: ChangeRig, path: str) -> None:
    """Neither one of the file nor one of the environment."""
    assert "Secret" not in rig.client.get(path).text


def test_a_query_of_a_probe_is_shown_nowhere(rig: ChangeRig) -> None:
    """It may be a credential. What is kept and asked is the whole."""
    spec = {**C, "health_endpoint": "/health?key=Secret-4"}
    answer = rig.ask("POST", "/api/backends", spec)[1]
    assert answer["after"]["health_endpoint"] == "/health?***"
    assert rig.control.running.loaded.config.backends[-1].health_endpoint == "/health?key=Secret-4"
    pages = [rig.client.get(path).text for path in ("/api/backends", "/api/config", "/health")]
    assert "Secret-4" not in str([answer, pages, rig.audit.told])


def test_the_way_of_workers_to_tell_each_other_is_not_there_for_others(rig: ChangeRig) -> None:
    """Only a worker's own socket has it."""
    assert rig.error("POST", "/api/config/changes") == (404, "not_found")


@pytest.mark.parametrize(("size", "status"), [(2**20, 422), (2**20 + 1, 413)])
def test_bodies_are_bounded(rig: ChangeRig, size: int, status: int) -> None:
    """At 1 MiB, which is more than any of these needs."""
    headers = {"content-type": "application/json"}
    answer = rig.client.post("/api/rules", content=b" " * size, headers=headers)
    assert answer.status_code == status


def test_a_body_without_a_length_is_bounded_too(rig: ChangeRig) -> None:
    """By what has come."""
    answer = rig.client.post("/api/rules", content=(b" " * 65_536 for _ in range(17)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_must_say_that_it_is_json(rig: ChangeRig, content_type: str) -> None:
    """A form of a web page can send any other kind without asking the browser."""
    headers = {"content-type": content_type} if content_type else {}
    answer = rig.client.post("/api/rules", content=b'{"name": "r", "backends": ["a"]}', headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")


HOSTILE = {
    "deep": b'{"name": "r", "backends": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a long number": b'{"name": "r", "backends": ["a"], "priority": ' + b"9" * 10_000 + b"}",
    "a number out of range": b'{"name": "r", "backends": ["a"], "priority": 1e999}',
    "no number": b'{"name": "r", "backends": ["a"], "max_cost_1m": NaN}',
    "half a character": b'{"name": "\\ud800", "backends": ["a"]}',
    "no UTF-8": b'{"name": "\xff", "backends": ["a"]}',
    "a key twice": b'{"name": "r", "name": "first", "backends": ["a"]}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_refused_like_any_other(rig: ChangeRig, name: str) -> None:
    """Whatever the parser makes of it."""
    headers = {"content-type": "application/json"}
    answer = rig.client.post("/api/rules", content=HOSTILE[name], headers=headers)
    assert answer.status_code in (400, 409, 422)
    assert answer.json()["error"]["code"] in ("invalid_body", "invalid_request", "rule_exists")
