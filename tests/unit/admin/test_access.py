"""Who may use the admin port."""

import pytest

from router_ext.admin.access import token_from
from router_ext.config.problem import ConfigError
from router_ext.model.secret import Secret
from tests.unit.admin.rig import NEW, OLD, TOKEN, AdminRig, filled_store

SESSIONS = "/api/sessions"
DELETE = f"/api/sessions?id={OLD}"
DECISIONS = "/api/decisions"
BEARER = f"Bearer {TOKEN}"
OPEN = ["/health", "/ready", "/metrics"]

WITHOUT_TOKEN = [
    None,
    "",
    "Bearer",
    "Bearer ",
    TOKEN,
    f"Basic {TOKEN}",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN.upper()}",
    f"Bearer {TOKEN} {TOKEN}",
    f"Bearer\u00e4 {TOKEN}",
]


@pytest.mark.parametrize("authorization", WITHOUT_TOKEN)
@pytest.mark.parametrize(("target", "method"), [(SESSIONS, "GET"), (DELETE, "DELETE"), (DECISIONS, "GET")])
def test_with_a_token_set_every_api_path_needs_it(target: str, method: str, authorization: str | None) -> None:
    """No header, another scheme, a token that is nearly right: all are told what is asked for."""
    store = filled_store()
    sent = authorization.encode("latin-1") if authorization is not None else None
    headers = {} if sent is None else {b"authorization": sent}
    answer = AdminRig(store, TOKEN).client.request(method, target, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_token")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text
    assert list(store.sessions) == [OLD, NEW]


@pytest.mark.parametrize("exposed", [True, False])
@pytest.mark.parametrize("authorization", [BEARER, f"bearer {TOKEN}", f"BEARER  {TOKEN}"])
def test_the_token_opens_every_api_path_from_anywhere(authorization: str, exposed: bool) -> None:
    """The scheme's case and the number of spaces do not matter."""
    rig = AdminRig(filled_store(), TOKEN, exposed=exposed)
    assert rig.ask(SESSIONS, "GET", authorization)[0] == 200
    assert rig.ask(DECISIONS, "GET", authorization) == (200, {"decisions": []})
    assert rig.ask(DELETE, "DELETE", authorization) == (200, {"deleted": True})


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/sessions/", "/%61pi/decisions"])
def test_a_path_below_api_that_does_not_exist_needs_the_token_too(path: str) -> None:
    """Nothing is learned of the paths without it, and a route that is added is protected."""
    assert AdminRig(filled_store(), TOKEN).error(path) == (401, "invalid_token")


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("exposed", [True, False])
@pytest.mark.parametrize("token", ["", TOKEN])
def test_probes_and_metrics_are_always_open(path: str, exposed: bool, token: str) -> None:
    """Kubernetes and Prometheus ask without a token."""
    assert AdminRig(filled_store(), token, exposed=exposed).ask(path)[0] == 200


def test_without_a_token_loopback_needs_no_login() -> None:
    """Whoever is on the machine may."""
    rig = AdminRig(filled_store())
    assert rig.ask(SESSIONS)[0] == 200
    assert rig.ask(DECISIONS)[0] == 200
    assert rig.ask(DELETE, "DELETE") == (200, {"deleted": True})


@pytest.mark.parametrize("authorization", [None, "Bearer ", BEARER])
@pytest.mark.parametrize(("target", "method"), [(SESSIONS, "GET"), (SESSIONS, "HEAD"), (DELETE, "DELETE")])
def test_without_a_token_other_machines_get_at_no_session(target: str, method: str, authorization: str | None) -> None:
    """Whatever they send. The answer says what to set."""
    store = filled_store()
    rig = AdminRig(store, exposed=True)
    headers = {} if authorization is None else {"authorization": authorization}
    assert rig.client.request(method, target, headers=headers).status_code == 403
    assert list(store.sessions) == [OLD, NEW]


def test_the_refusal_without_a_token_names_the_variable() -> None:
    """As an error with a code of its own."""
    status, body = AdminRig(filled_store(), exposed=True).ask(DELETE, "DELETE")
    assert (status, body["error"]["code"]) == (403, "token_not_set")
    assert "set ROUTER_API_TOKEN" in body["error"]["message"]


@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("POST", 403), ("DELETE", 403)])
def test_without_a_token_other_machines_may_read_decisions_only(method: str, status: int) -> None:
    """They hold no prompt and no session; nothing can be written."""
    assert AdminRig(filled_store(), exposed=True).ask(DECISIONS, method)[0] == status


@pytest.mark.parametrize("environ", [{}, {"ROUTER_API_TOKEN": ""}])
def test_a_variable_that_is_not_set_or_empty_is_no_token(environ: dict[str, str]) -> None:
    """Compose files set variables to nothing."""
    assert token_from(environ) is None


@pytest.mark.parametrize("value", ["x", "a-b.c_d~e+f/g==", "x" * 4096])
def test_a_token_is_any_printable_word(value: str) -> None:
    """It remembers its variable and hides its value."""
    token = token_from({"ROUTER_API_TOKEN": value})
    assert token == Secret(value, "env:ROUTER_API_TOKEN")
    assert str(token) == "<secret from env:ROUTER_API_TOKEN>"


@pytest.mark.parametrize("value", ["hunter2\n", "hunter 2", "hünter2", " ", "x" * 4097])
def test_a_token_that_no_header_carries_is_a_problem(value: str) -> None:
    """The router would start with an API that nobody can use. The message does not show it."""
    with pytest.raises(ConfigError) as error:
        token_from({"ROUTER_API_TOKEN": value})
    assert str(error.value) == (
        "env ROUTER_API_TOKEN: must be 1 to 4096 printable ASCII characters without a space or a line end"
    )
