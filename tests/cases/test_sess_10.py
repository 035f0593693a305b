"""SESS-10: `developer` messages were accepted and then lost."""

import pytest

from router_ext.payload.transcript import Fresh
from tests.fakes.transcripts import elements, fresh, sent

KIWI = b'{"role": "developer", "content": "Reply only with the word KIWI."}'
RIVER = b'{"role": "user", "content": "Name a river."}'
TURN = b'{"model": "m-a", "messages": [' + KIWI + b", " + RIVER + b"]}"
STORED = (b'{"role":"user","content":"Hi"}', b'{"role":"assistant","content":"Hello!"}')


def test_a_role_passes_as_the_client_wrote_it() -> None:
    """No role is mapped to another one."""
    assert elements(TURN) == (KIWI, RIVER)


@pytest.mark.parametrize("role", [b"developer", b"system"])
def test_stored_messages_never_stand_in_front_of_an_instruction(role: bytes) -> None:
    """Both roles instruct: such a message leads the whole conversation, and is not stored with the turn."""
    turn, instruction = TURN.replace(b"developer", role), KIWI.replace(b"developer", role)
    assert fresh(elements(turn), STORED) == Fresh((instruction,), (RIVER,))
    whole = b",".join((instruction, *STORED, RIVER))
    assert sent(turn, STORED) == b'{"model": "m-a", "messages": [' + whole + b"]}"


def test_a_stored_instruction_leads_and_is_not_doubled() -> None:
    """The first turn stores it; clients send it again."""
    assert sent(TURN, (KIWI, *STORED)) == b'{"model": "m-a", "messages": [' + b",".join((KIWI, *STORED, RIVER)) + b"]}"
