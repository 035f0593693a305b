"""Sessions on the admin port: listed without content, destroyed one at a time."""

import pytest

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
    assert rig.ask(f"{PATH}?id={OLD}", "DELETE") == (200, {"deleted": True})
    assert list(store.sessions) == [NEW]
    assert rig.error(f"{PATH}?id={OLD}", "DELETE") == (404, "session_not_found")
    assert rig.telemetry.evictions == ["deleted"]


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
