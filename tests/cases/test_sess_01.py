"""SESS-01: a session was continued for whoever knew its id."""

import pytest

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import (
    CREATE,
    ask,
    assistant,
    begin,
    body_of,
    continues,
    ends,
    messages_of,
    plain,
    said,
    user,
    with_sessions,
)

A = {"authorization": "Bearer key-of-A", "x-kronaxis-service": "shop"}
STORED = (user("My card is 4929."), assistant("Noted."))


def _created() -> tuple[EngineRig, str]:
    """A's session."""
    rig = EngineRig(with_sessions(router(backend("a"))))
    return rig, ask(rig, said("My card is 4929."), {**CREATE, **A}, plain("Noted.")).session_id


@pytest.mark.parametrize(
    "caller",
    [
        {"authorization": "Bearer key-of-B", "x-kronaxis-service": "shop"},
        {"authorization": "Bearer key-of-A", "x-kronaxis-service": "crm"},
        {"authorization": "Bearer key-of-A"},
        {"x-kronaxis-service": "shop"},
        {},
    ],
)
def test_knowing_an_id_gives_nobody_the_conversation(caller: dict[str, str]) -> None:
    """The answer is that for an id that does not exist, no backend sees anything, and the attempt is counted."""
    rig, session_id = _created()
    served = len(rig.telemetry.decisions)
    missing = ask(rig, said("What is my card?"), {**continues(session_id[:-4] + "ffff"), **caller})
    for wish in (continues(session_id), ends(session_id)):
        asked = ask(rig, said("What is my card?"), {**wish, **caller})
        assert (asked.status, asked.body) == (404, missing.body)
        assert asked.headers == missing.headers
    assert len(rig.telemetry.decisions) == served
    assert [rejection.reason for _, rejection in rig.telemetry.refusals] == ["session_not_found"] * 3
    assert messages_of(rig, session_id) == STORED


def test_its_owner_goes_on_as_if_nothing_had_happened() -> None:
    """Neither the attempts nor their end destroyed or changed anything."""
    rig, session_id = _created()
    ask(rig, said("x"), {**ends(session_id), "authorization": "Bearer key-of-B"})
    assert begin(rig, said("Go on."), {**continues(session_id), **A}).sent == body_of(*STORED, user("Go on."))


def test_a_turn_is_kept_for_its_owner_only() -> None:
    """Whoever is the owner when it is written: the store is told with each call."""
    rig, session_id = _created()
    asked = begin(rig, said("Go on."), {**continues(session_id), **A})
    owner = rig.sessions.sessions[session_id].meta.owner
    assert "key-of-A" not in owner
    asked.answer_head(kind="application/json")
    asked.piece(plain("Sure."), end=True)
    assert rig.sessions.sessions[session_id].meta.owner == owner
