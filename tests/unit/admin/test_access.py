"""Who may use the admin port."""

import pytest

from router_ext.admin.access import Access, token_from
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
    assert rig.ask(DELETE, "DELETE", authorization) == (200, {"deleted": True, "dry_run": False})


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/sessions/", "/%61pi/decisions"])
def test_a_path_below_api_that_does_not_exist_needs_the_token_too(path: str) -> None:
    """Nothing is learned of the paths without it, and a route that is added is protected."""
    assert AdminRig(filled_store(), TOKEN).error(path) == (401, "invalid_token")


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize(("token", "exposed"), [("", False), (TOKEN, False), (TOKEN, True)])
def test_probes_and_metrics_are_always_open(path: str, exposed: bool, token: str) -> None:
    """Kubernetes and Prometheus ask without a token."""
    assert AdminRig(filled_store(), token, exposed=exposed).ask(path)[0] == 200


def test_without_a_token_loopback_needs_no_login() -> None:
    """Whoever is on the machine may."""
    rig = AdminRig(filled_store())
    assert rig.ask(SESSIONS)[0] == 200
    assert rig.ask(DECISIONS)[0] == 200
    assert rig.ask(DELETE, "DELETE") == (200, {"deleted": True, "dry_run": False})


def test_an_address_that_other_machines_reach_needs_a_token() -> None:
    """Without one there is no application at all. The message says what to set, or to change."""
    with pytest.raises(ConfigError) as error:
        Access(None, exposed=True)
    assert str(error.value) == (
        "env ROUTER_API_TOKEN: must be set: server.admin_host is an address that other machines reach "
        "(or use 127.0.0.1)"
    )


@pytest.mark.parametrize(
    "path", ["/", "/openapi.json", "/mcp", "/mcp/", "/nothing", "/Health", "/health/", "/metrics/x"]
)
def test_whatever_is_not_open_needs_the_token(path: str) -> None:
    """The list is of what is open, so nothing can be forgotten."""
    assert AdminRig(filled_store(), TOKEN).error(path) == (401, "invalid_token")


HOSTS = ["127.0.0.1", "127.0.0.1:8052", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8052", "127.8.8.8"]
FOREIGN_HOSTS = [
    "",
    "evil.test",
    "evil.test:8052",
    "localhost.evil.test",
    "10.0.0.1",
    "127.0.0.1.evil.test",
    "[::2]",
    "a@b",
]


@pytest.mark.parametrize("path", ["/health", DECISIONS])
@pytest.mark.parametrize("host", HOSTS)
def test_on_loopback_a_request_for_this_machine_passes(host: str, path: str) -> None:
    """By name or by any of its addresses."""
    assert AdminRig(filled_store()).client.get(path, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/health", DECISIONS, "/nothing"])
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_on_loopback_a_request_for_another_host_does_not(host: str, path: str) -> None:
    """A name that a web page's owner leads to this machine tells that nobody here meant it."""
    answer = AdminRig(filled_store()).client.get(path, headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_host")


FOREIGN = [
    {"origin": "https://evil.test"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:3000"},
    {"origin": "file://127.0.0.1"},
    {"origin": "http://127.0.0.1.evil.test"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "Cross-Site"},
    {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=[" ".join(headers.values()) for headers in FOREIGN])
@pytest.mark.parametrize("authorization", [BEARER, ""])
@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_web_page_of_another_site_is_refused(headers: dict[str, str], authorization: str, method: str) -> None:
    """Also with the token, which a browser may have been given; before anything is done."""
    store = filled_store()
    sent = {**headers, "authorization": authorization}
    answer = AdminRig(store, TOKEN).client.request(method, DELETE, headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign_origin")
    assert list(store.sessions) == [OLD, NEW]


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "http://127.0.0.1"}, {"origin": "https://127.0.0.1"}, {"sec-fetch-site": "none"}],
    ids=["no browser", "same origin", "same origin over TLS", "typed"],
)
def test_other_requests_are_not(headers: dict[str, str]) -> None:
    """Command lines send neither header; the address in the location bar is the user's own wish."""
    assert AdminRig(filled_store()).client.get(DECISIONS, headers=headers).status_code == 200


@pytest.mark.parametrize("headers", FOREIGN, ids=[" ".join(headers.values()) for headers in FOREIGN])
@pytest.mark.parametrize("path", OPEN)
def test_open_paths_do_not_ask_where_a_request_comes_from(headers: dict[str, str], path: str) -> None:
    """There is nothing behind them that a login would protect."""
    assert AdminRig(filled_store(), TOKEN).client.get(path, headers=headers).status_code == 200


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
