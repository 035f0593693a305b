"""Sessions on the admin port: listed without content, destroyed one at a time."""

import orjson
import pytest

from router_ext.config.sections import Server, Sessions
from router_ext.payload.session_request import owner_of
from tests.unit.admin.rig import CONTENT, NEW, OLD, OWNER, AdminRig, filled_store

PATH = "/api/sessions"


def test_sessions_are_listed_last_used_first() -> None:
    """Sizes and times of each, times in UTC."""
    assert AdminRig(filled_store()).ask(PATH) == (
        200,
        {
            "sessions": [
                {
                    "id": NEW,
                    "tokens": 0,
                    "turns": 1,
                    "bytes": 35,
                    "created": "2023-11-14T22:15:00.000Z",
                    "last_used": "2023-11-14T22:15:00.000Z",
                },
                {
                    "id": OLD,
                    "tokens": 90,
                    "turns": 2,
                    "bytes": 700,
                    "created": "2023-11-14T22:13:20.000Z",
                    "last_used": "2023-11-14T22:14:20.500Z",
                },
            ]
        },
    )


def test_a_list_holds_no_content_and_no_owner() -> None:
    """Whoever lists sessions can neither read nor continue them."""
    text = AdminRig(filled_store()).client.get(PATH).text
    assert OLD in text
    assert OWNER not in text
    assert CONTENT.decode() not in text


def test_a_limit_shortens_the_list() -> None:
    """To the sessions that were used last."""
    _, body = AdminRig(filled_store()).ask(f"{PATH}?limit=1")
    assert [session["id"] for session in body["sessions"]] == [NEW]


@pytest.mark.parametrize(("limit", "status"), [("0", 422), ("1", 200), ("1000", 200), ("1001", 422), ("x", 422)])
def test_a_limit_is_between_1_and_1000(limit: str, status: int) -> None:
    """Both bounds included."""
    assert AdminRig(filled_store()).ask(f"{PATH}?limit={limit}")[0] == status


def test_a_session_is_destroyed_once() -> None:
    """The second time it is not there. Other sessions stay, and only the first call counts."""
    store = filled_store()
    rig = AdminRig(store)
    assert rig.ask(f"{PATH}?id={OLD}", "DELETE") == (200, {"deleted": True, "dry_run": False})
    assert list(store.sessions) == [NEW]
    assert rig.error(f"{PATH}?id={OLD}", "DELETE") == (404, "session_not_found")
    assert rig.telemetry.evictions == ["deleted"]


def test_a_dry_run_destroys_no_session() -> None:
    """It says whether there is one to destroy."""
    store = filled_store()
    rig = AdminRig(store)
    assert rig.ask(f"{PATH}?id={OLD}&dry_run=true", "DELETE") == (200, {"deleted": False, "dry_run": True})
    assert list(store.sessions) == [OLD, NEW]
    assert rig.telemetry.evictions == []
    assert rig.audit.results == [("delete_session", "dry_run")]
    unknown = OLD.replace("a", "c")
    assert rig.error(f"{PATH}?id={unknown}&dry_run=true", "DELETE") == (404, "session_not_found")


@pytest.mark.parametrize(
    "query", ["", "?id=", "?id=*", "?id=sess_1", f"?id={OLD.upper()}", f"?id={OLD}0", f"?id={OLD}%0a", f"?id=%20{OLD}"]
)
def test_what_is_no_session_id_is_refused_before_the_store_is_asked(query: str) -> None:
    """The store is away here, which nobody notices."""
    store = filled_store()
    store.away = True
    assert AdminRig(store).error(PATH + query, "DELETE") == (400, "invalid_session_id")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_without_sessions_there_is_nothing_to_see(method: str) -> None:
    """The code says why."""
    assert AdminRig(None).error(f"{PATH}?id={OLD}", method) == (404, "sessions_disabled")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_while_the_store_is_away_the_answer_says_when_to_come_again(method: str) -> None:
    """Nothing is known of any session then, so nothing is counted."""
    store = filled_store()
    store.away = True
    rig = AdminRig(store)
    assert rig.error(f"{PATH}?id={OLD}", method) == (503, "session_store_unavailable")
    assert rig.client.request(method, f"{PATH}?id={OLD}").headers["retry-after"] == "2"
    assert rig.telemetry.evictions == []


MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hunter2 ünd"}]


def test_a_session_is_begun_from_messages_for_a_caller() -> None:
    """Who sends the same service and credential finds it; the messages are kept as they came."""
    store = filled_store()
    rig = AdminRig(store)
    credential = {"value": "Bearer sk-of-a-caller"}
    body = {"messages": MESSAGES, "service": "shop", "credential": credential}
    status, created = rig.ask(PATH, "POST", body=body)
    assert (status, created["created"], created["dry_run"], created["messages"]) == (201, True, False, 2)
    session = store.sessions[created["id"]]
    assert session.meta.owner == owner_of({"authorization": "Bearer sk-of-a-caller"}, "shop")
    assert [orjson.loads(message) for message in session.messages] == MESSAGES
    assert (session.meta.tokens, session.meta.bytes) == (created["tokens"], created["bytes"])
    assert rig.audit.results == [("create_session", "changed")]
    assert "hunter2" not in str(rig.audit.told)
    assert "sk-of-a-caller" not in str(rig.audit.told)


def test_a_session_without_a_credential_is_for_callers_without_one() -> None:
    """Of that service, which may be none."""
    store = filled_store()
    _, created = AdminRig(store).ask(PATH, "POST", body={"messages": MESSAGES})
    assert store.sessions[created["id"]].meta.owner == owner_of({}, "")


def test_a_dry_run_begins_no_session() -> None:
    """It says what would be kept."""
    store = filled_store()
    rig = AdminRig(store)
    status, body = rig.ask(f"{PATH}?dry_run=true", "POST", body={"messages": MESSAGES})
    assert (status, body["id"], body["created"], body["dry_run"]) == (201, None, False, True)
    assert list(store.sessions) == [OLD, NEW]
    assert rig.audit.results == [("create_session", "dry_run")]


BAD: dict[str, tuple[object, int, str]] = {
    "no messages": ({"messages": []}, 422, "invalid_request"),
    "a message that is text": ({"messages": ["hi"]}, 422, "invalid_request"),
    "an unknown key": ({"messages": MESSAGES, "owner": "me"}, 422, "invalid_request"),
    "half a character": ({"messages": [{"role": "user", "content": "\ud800"}]}, 422, "invalid_messages"),
    "another header": (
        {"messages": MESSAGES, "credential": {"header": "cookie", "value": "x"}},
        422,
        "invalid_request",
    ),
    "an empty credential": ({"messages": MESSAGES, "credential": {"value": ""}}, 422, "invalid_request"),
    "a service that no header carries": ({"messages": MESSAGES, "service": "ü"}, 422, "invalid_request"),
    "a service with a line end": ({"messages": MESSAGES, "service": "a\n"}, 422, "invalid_request"),
    "a service that is too long": ({"messages": MESSAGES, "service": "x" * 129}, 422, "invalid_request"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_no_caller_could_send_begins_no_session(name: str) -> None:
    """The answer says where, and is told to the audit."""
    body, status, code = BAD[name]
    store = filled_store()
    rig = AdminRig(store)
    assert rig.error(PATH, "POST", body=body) == (status, code)
    assert list(store.sessions) == [OLD, NEW]
    assert rig.audit.results == [("create_session", "refused")]


@pytest.mark.parametrize(("tokens", "status"), [(17, 201), (16, 413)])
def test_a_context_is_as_long_as_one_of_a_client_at_most(tokens: int, status: int) -> None:
    """65 bytes are 17 tokens, by the usual ratio."""
    server = Server(sessions=Sessions(max_context_tokens=tokens))
    body = {"messages": [{"role": "user", "content": "x" * 37}]}
    assert AdminRig(filled_store(), server=server).ask(PATH, "POST", body=body)[0] == status


def test_messages_are_as_large_as_a_client_may_send_them_at_most() -> None:
    """Above 1 MiB, which is the limit of all else, and up to ``max_body_bytes``."""
    body = {"messages": [{"role": "user", "content": "x" * 1_100_000}]}
    server = Server(max_body_bytes=1_200_000)
    assert AdminRig(filled_store(), server=server).ask(PATH, "POST", body=body)[0] == 201
    server = Server(max_body_bytes=1_100_000)
    assert AdminRig(filled_store(), server=server).error(PATH, "POST", body=body) == (413, "body_too_large")


@pytest.mark.parametrize("store", ["none", "away"])
def test_without_a_store_no_session_is_begun(store: str) -> None:
    """Where sessions are not enabled, and while the store does not answer."""
    kept = filled_store()
    kept.away = True
    rig = AdminRig(None if store == "none" else kept)
    expected = (404, "sessions_disabled") if store == "none" else (503, "session_store_unavailable")
    assert rig.error(PATH, "POST", body={"messages": MESSAGES}) == expected
    assert rig.audit.results == [("create_session", "refused" if store == "none" else "failed")]
