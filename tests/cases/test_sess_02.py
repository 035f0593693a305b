"""SESS-02: a client's own session id was used as it came."""

import pytest

from router_ext.model.rejection import Reason, Rejection
from router_ext.payload.session_request import ContinueSession, owner_of, read_session
from tests.fakes.domain import CHAT

ID = "sess_0f8fad5b-d9cb-469f-a165-70867728950e"


def test_an_id_of_the_routers_own_form_is_read() -> None:
    """``sess_`` and a random UUID, of which 122 bits are random."""
    assert read_session({"x-kronaxis-session-id": ID}, CHAT) == ContinueSession(ID)


@pytest.mark.parametrize(
    "odd",
    [
        "session-of-A",
        "1",
        ID.upper(),
        ID.removeprefix("sess_"),
        ID + "0",
        ID[:-1],
        ID + "\n",
        " " + ID,
        f"{ID},{ID}",
        ID.replace("-469f-", "-169f-"),
        ID.replace("-a165-", "-c165-"),
        ID.replace("-", ""),
        ID[:-1] + "g",
        ID[:-1] + "\u0663",
    ],
)
def test_any_other_id_is_refused(odd: str) -> None:
    """Guessable ids, other versions of UUIDs, white space and digits that are not ASCII; it is not repeated either."""
    refusal = read_session({"x-kronaxis-session-id": odd}, CHAT)
    assert isinstance(refusal, Rejection)
    assert (refusal.reason, refusal.param, refusal.status) == (Reason.BAD_HEADER, "x-kronaxis-session-id", 400)
    assert refusal.message == ("The header x-kronaxis-session-id is malformed: it must be an id that this router gave.")


def test_an_id_is_looked_up_for_the_callers_own_credential() -> None:
    """The owner comes from the credential, never from the id or another header that names one."""
    of_a, of_b = (owner_of({"authorization": f"Bearer key-of-{name}"}, "") for name in "AB")
    assert of_a != of_b
    claims = {"x-kronaxis-session-id": ID, "x-session-id": "session-of-A", "x-kronaxis-personaid": "A"}
    assert owner_of({"authorization": "Bearer key-of-B", **claims}, "") == of_b


def test_an_unknown_id_is_not_found() -> None:
    """Never a session of zeros."""
    assert Rejection(Reason.SESSION_NOT_FOUND, "").status == 404
