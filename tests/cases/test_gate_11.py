"""GATE-11: definitions that refer to each other through allOf made validators recurse until they broke."""

from router_ext.model.gate import SchemaVerdict
from tests.schemas.courts import open_court

MUTUAL = {
    "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
    "$ref": "#/$defs/a",
}
TREE = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}


async def test_recursion_that_goes_nowhere_is_a_bad_schema() -> None:
    """Found before it is run: no judge is lost."""
    async with open_court(judges=1) as court:
        assert await court.judge(MUTUAL, "{}") is SchemaVerdict.BAD_SCHEMA
        assert court.losses == []


async def test_legal_recursion_works_3000_levels_deep() -> None:
    """A verdict like for any other answer."""
    reply = '{"next":' * 3_000 + "{}" + "}" * 3_000
    wrong = '{"next":' * 3_000 + '{"other": 1}' + "}" * 3_000
    async with open_court(judges=1) as court:
        assert await court.judge(TREE, reply) is SchemaVerdict.VALID
        assert await court.judge(TREE, wrong) is SchemaVerdict.INVALID
        assert court.losses == []
