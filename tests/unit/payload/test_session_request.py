"""What headers ask of a session, and who owns it."""

import re
from itertools import combinations

import pytest

from router_ext.model.backend import CREDENTIAL_HEADERS
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Api
from router_ext.payload.session_request import (
    ContinueSession,
    CreateSession,
    SessionWish,
    owner_of,
    read_session,
)

ID = "sess_0f8fad5b-d9cb-469f-a165-70867728950e"


def _headers(create: str | None = None, session: str | None = None, end: str | None = None) -> dict[str, str]:
    values = {"create": create, "id": session, "end": end}
    return {f"x-kronaxis-session-{name}": value for name, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("create", "session", "end", "wish"),
    [
        (None, None, None, None),
        ("false", None, None, None),
        (None, None, "false", None),
        ("false", None, "false", None),
        ("true", None, None, CreateSession()),
        ("true", None, "false", CreateSession()),
        (None, ID, None, ContinueSession(ID)),
        ("false", ID, "false", ContinueSession(ID)),
        (None, ID, "true", ContinueSession(ID, ends=True)),
        ("false", ID, "true", ContinueSession(ID, ends=True)),
    ],
)
def test_headers_say_what_becomes_of_a_session(
    create: str | None, session: str | None, end: str | None, wish: SessionWish | None
) -> None:
    """Missing is false, and without any true and without an id there is no wish."""
    assert read_session(_headers(create, session, end), Api.CHAT) == wish


@pytest.mark.parametrize(
    ("create", "session", "end", "wrong"),
    [
        ("true", ID, None, "create"),
        ("true", ID, "true", "create"),
        (None, None, "true", "end"),
        ("true", None, "true", "end"),
        ("", None, None, "create"),
        ("True", None, None, "create"),
        ("1", None, None, "create"),
        ("true,true", None, None, "create"),
        (None, ID, "yes", "end"),
        (None, ID, "", "end"),
        (None, "", None, "id"),
        ("true", "", None, "id"),
    ],
)
def test_odd_values_and_contradictions_are_refused(
    create: str | None, session: str | None, end: str | None, wrong: str
) -> None:
    """With the header's name, and 400."""
    refusal = read_session(_headers(create, session, end), Api.CHAT)
    assert isinstance(refusal, Rejection)
    assert (refusal.reason, refusal.param, refusal.status) == (
        Reason.BAD_HEADER,
        f"x-kronaxis-session-{wrong}",
        400,
    )


@pytest.mark.parametrize(
    "path", [Api.COMPLETIONS, Api.EMBEDDINGS, Api.RESPONSES, Api.MESSAGES, "/v1/chat/completions/", "/"]
)
def test_sessions_are_for_chat_completions_only(path: str) -> None:
    """Any wish on another path is refused; no wish is none there too."""
    for headers in (_headers("true"), _headers(None, ID), _headers(None, ID, "true")):
        refusal = read_session(headers, path)
        assert refusal == Rejection(Reason.SESSIONS_UNSUPPORTED, "Sessions are for /v1/chat/completions only.")
        assert refusal.status == 400
    assert read_session(_headers("false"), path) is None


def test_an_owner_is_32_hexadecimal_digits_that_do_not_change() -> None:
    """Replicas and later releases must agree: written here by hand from SHA-256 over the framed values."""
    assert re.fullmatch("[0-9a-f]{32}", owner_of({}, ""))
    assert owner_of({}, "") == "2c34ce1df23b838c5abf2a7f6437cca3"
    assert owner_of({"authorization": "Bearer k"}, "billing") == "5d306a7a986370aba8f344835b0815a0"


def test_each_credential_header_and_the_service_make_another_owner() -> None:
    """Also the same value in another header, and in the service's place."""
    owners = [owner_of({}, ""), owner_of({}, "k"), *(owner_of({name: "k"}, "") for name in CREDENTIAL_HEADERS)]
    owners += [owner_of(dict.fromkeys(pair, "k"), "") for pair in combinations(CREDENTIAL_HEADERS, 2)]
    assert len(set(owners)) == len(owners) == 12


def test_values_are_framed() -> None:
    """Moving a character from one value to the next makes another owner."""
    pair = {"authorization": "ab", "x-api-key": "c"}
    assert owner_of(pair, "") != owner_of({"authorization": "a", "x-api-key": "bc"}, "")


def test_other_headers_and_empty_values_do_not_count() -> None:
    """A caller stays the same owner whatever else it sends."""
    assert owner_of({"authorization": "k", "x-request-id": "1"}, "s") == owner_of({"authorization": "k"}, "s")
    assert owner_of({"authorization": "k", "x-api-key": ""}, "s") == owner_of({"authorization": "k"}, "s")


def test_any_header_text_has_an_owner() -> None:
    """Bytes that were no UTF-8 may reach us as surrogates."""
    assert owner_of({"authorization": "\udcff"}, "") != owner_of({"authorization": "\udcfe"}, "")
