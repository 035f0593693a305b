"""GATE-02: a bash block before the JSON block was taken as the answer."""

import json

import pytest

from router_ext.gate.text import json_text

REPLY = 'Run:\n```bash\necho hi\n```\nthen\n```json\n{"ok":true}\n```'


def test_the_json_block_is_judged() -> None:
    """The tag says which one it is."""
    assert json.loads(json_text(REPLY)) == {"ok": True}


def test_of_several_json_blocks_the_last_one_is_judged() -> None:
    """Models correct themselves: what comes last is what they mean."""
    assert json.loads(json_text('```json\n{"ok":false}\n```\nNo:\n' + REPLY)) == {"ok": True}
    assert json.loads(json_text(REPLY + '\n```json\n{"ok":false}\n```\n')) == {"ok": False}


@pytest.mark.parametrize(
    "reply",
    [
        REPLY.replace("json", "JSON"),
        REPLY.replace("```", "~~~"),
        REPLY.replace("\n", "\r\n"),
        REPLY.replace("```", "   ```"),
        REPLY.removesuffix("```"),
        REPLY.removesuffix("\n```"),
    ],
    ids=["case", "tildes", "CRLF", "indented", "unclosed", "unclosed within its line"],
)
def test_other_ways_to_write_a_block_are_accepted(reply: str) -> None:
    """The rule is that of CommonMark."""
    assert json.loads(json_text(reply)) == {"ok": True}


@pytest.mark.parametrize("reply", ['Here you are: {"ok":true}', '{"ok":true} Done.', 'Here:\n```\n{"ok":true}\n```'])
def test_prose_around_a_value_is_not_taken_away(reply: str) -> None:
    """A caller that parses the answer would fail on it as well."""
    assert json_text(reply) == reply
