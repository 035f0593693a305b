"""Judgements by real processes: verdicts, order, and what is remembered."""

import asyncio
import sys

import psutil
import pytest

from router_ext.model.gate import SchemaText, SchemaVerdict
from router_ext.schemas.court import MAX_BAD, JudgeLoss
from tests.schemas.courts import bomb, open_court, schema_text, until

ORDER = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object", "required": ["id"]}}},
    "required": ["items"],
}
LIST = {"type": ["array", "null"], "items": {"$ref": "#"}}
"""Lists of lists."""


async def test_verdicts() -> None:
    """One of each kind; texts may be str or bytes."""
    async with open_court() as court:
        assert await court.judge(ORDER, '{"items": [{"id": 1}]}') is SchemaVerdict.VALID
        assert await court.judge(ORDER, b'{"items": [{"id": "\xc3\xbc"}]}') is SchemaVerdict.VALID
        assert await court.judge(ORDER, '{"items": [{}]}') is SchemaVerdict.INVALID
        assert await court.judge(ORDER, '[{"items": []}]') is SchemaVerdict.INVALID
        assert await court.judge({"type": "array"}, "[1, 2]") is SchemaVerdict.VALID
        assert await court.judge(ORDER, '{"items": [], "items": []}') is SchemaVerdict.NOT_JSON
        assert await court.judge(ORDER, "[NaN]") is SchemaVerdict.NOT_JSON
        assert await court.judge({"type": "nothing"}, "{}") is SchemaVerdict.BAD_SCHEMA
        assert court.losses == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1]}', SchemaVerdict.VALID),
        ("-Infinity", SchemaVerdict.NOT_JSON),
        ("{} more", SchemaVerdict.NOT_JSON),
        ("", SchemaVerdict.NOT_JSON),
        ("\ud800", SchemaVerdict.NOT_JSON),
        (b"\xff", SchemaVerdict.NOT_JSON),
    ],
)
async def test_without_a_schema_a_text_must_only_be_json(text: str | bytes, expected: SchemaVerdict) -> None:
    """Also texts that have no UTF-8."""
    async with open_court(judges=1) as court:
        assert await court.court.judge(None, text) is expected
        assert court.losses == []


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("http://json-schema.org/draft-04/schema#", SchemaVerdict.VALID),
        ("http://json-schema.org/draft-06/schema#", SchemaVerdict.INVALID),
        ("http://json-schema.org/draft-07/schema#", SchemaVerdict.INVALID),
        ("https://json-schema.org/draft/2019-09/schema", SchemaVerdict.INVALID),
        ("https://json-schema.org/draft/2020-12/schema", SchemaVerdict.INVALID),
        ("http://json-schema.org/draft-03/schema#", SchemaVerdict.BAD_SCHEMA),
    ],
)
async def test_the_draft_is_that_of_the_schema(draft: str, expected: SchemaVerdict) -> None:
    """``const`` is a keyword since draft 6."""
    async with open_court(judges=1) as court:
        assert await court.judge({"$schema": draft, "const": 1}, "2") is expected


async def test_200_judgements_at_once_come_in_order_each_with_its_own_verdict() -> None:
    """First come, first served: with one judge the ends have the order of the calls."""
    ended: list[int] = []
    async with open_court(judges=1) as court:

        async def ask(number: int) -> SchemaVerdict:
            verdict = await court.judge({"const": number // 2}, str((number + 1) // 2))
            ended.append(number)
            return verdict

        verdicts = await asyncio.gather(*map(ask, range(200)))
    assert verdicts == [SchemaVerdict.VALID, SchemaVerdict.INVALID] * 100
    assert ended == list(range(200))


async def test_judges_work_side_by_side_and_one_stands_by() -> None:
    """Two of them: the second one takes a text while the first is busy. Nothing starts before the first call."""
    async with open_court(judges=2) as court:
        assert court.court.pids == frozenset()
        await court.judge(True, "1")
        await until(lambda: len(court.court.pids) == 3)
        busy = asyncio.create_task(court.judge(bomb(55), '"x"'))
        pid = await court.judge_at_work()
        assert [await court.judge({"const": n}, str(n)) for n in range(20)] == [SchemaVerdict.VALID] * 20
        assert pid in court.court.pids
        assert court.losses == []
        busy.cancel()


@pytest.mark.parametrize("schema", [None, True, {"type": "array"}, LIST, {"unevaluatedItems": LIST}, {"enum": [[[]]]}])
async def test_3000_levels_get_a_verdict(schema: object) -> None:
    """Like any other text, by the judge's own stack."""
    text = "[" * 3_000 + "]" * 3_000
    expected = SchemaVerdict.INVALID if isinstance(schema, dict) and "enum" in schema else SchemaVerdict.VALID
    async with open_court(judges=1) as court:
        given = None if schema is None else schema_text(schema)
        assert await court.court.judge(given, text) is expected
        assert await court.court.judge(given, text[:-1]) is SchemaVerdict.NOT_JSON
        assert court.losses == []


async def test_100000_levels_are_no_json() -> None:
    """RFC 8259, section 9: a parser may limit the depth. The judge goes on."""
    async with open_court(judges=1) as court:
        assert await court.judge(LIST, "[" * 100_000 + "]" * 100_000) is SchemaVerdict.NOT_JSON
        assert await court.judge(LIST, "[[]]") is SchemaVerdict.VALID
        assert court.losses == []


async def test_a_tree_is_legal_recursion() -> None:
    """A schema may refer to itself for what is inside the value."""
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    async with open_court(judges=1) as court:
        assert await court.judge(tree, '{"children": [{"children": [{}, {}]}]}') is SchemaVerdict.VALID
        assert await court.judge(tree, '{"children": [{"children": [{}, 1]}]}') is SchemaVerdict.INVALID


async def test_a_schema_over_64_kib_reaches_no_judge() -> None:
    """The limit itself is judged."""
    async with open_court(judges=1) as court:
        assert await court.court.judge(SchemaText(b"{}" + b" " * 65_535), "1") is SchemaVerdict.BAD_SCHEMA
        assert court.court.pids == frozenset()
        assert await court.court.judge(SchemaText(b"{}" + b" " * 65_534), "1") is SchemaVerdict.VALID


async def test_a_bad_schema_is_remembered() -> None:
    """A closed court has no judges, and still knows it: the last ``MAX_BAD`` of them."""
    async with open_court(judges=1) as court:
        bad = [{"type": f"t{number}"} for number in range(MAX_BAD + 1)]
        for schema in bad:
            assert await court.judge(schema, "1") is SchemaVerdict.BAD_SCHEMA
        await court.court.close()
        assert await court.judge(bad[0], "1") is SchemaVerdict.TIMEOUT
        assert await court.judge(bad[1], "1") is SchemaVerdict.BAD_SCHEMA
        assert await court.judge(bad[-1], "other") is SchemaVerdict.BAD_SCHEMA
        assert await court.judge(True, "1") is SchemaVerdict.TIMEOUT


async def test_closing_ends_what_is_under_way() -> None:
    """Callers get TIMEOUT; the processes are gone."""
    async with open_court(judges=1) as court:
        busy = asyncio.create_task(court.judge(bomb(55), '"x"'))
        await court.judge_at_work()
        pids = court.court.pids
        await court.court.close()
        assert await busy is SchemaVerdict.TIMEOUT
        assert not any(map(psutil.pid_exists, pids))
        assert court.losses == []


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
async def test_a_judge_that_does_not_start_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The caller waits no longer than for a busy one."""
    async with open_court(judges=1, wait_s=0.2) as court:
        with monkeypatch.context() as broken:
            broken.setattr(sys, "executable", program)
            assert await court.judge(True, "1") is SchemaVerdict.TIMEOUT
        assert court.losses == [JudgeLoss.NOT_STARTED] * 2
        async with asyncio.timeout(20):
            while await court.judge(True, "1") is not SchemaVerdict.VALID:
                pass


async def test_a_judge_has_no_secrets_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not get the keys that the router has; memory is limited, and it leaves no core file."""
    monkeypatch.setenv("BACKEND_API_KEY", "sk-secret")
    async with open_court(judges=1) as court:
        await court.judge(True, "1")
        # The one that stands by has had no request, which would bound its processor time.
        judges = [psutil.Process(pid) for pid in court.court.pids]
        judge = max(judges, key=lambda process: process.rlimit(psutil.RLIMIT_CPU)[0])
        assert "BACKEND_API_KEY" not in judge.environ()
        assert "PATH" in judge.environ()
        assert judge.rlimit(psutil.RLIMIT_AS)[0] == 512 * 1024 * 1024
        assert judge.rlimit(psutil.RLIMIT_CORE)[0] == 0
        assert 21 <= judge.rlimit(psutil.RLIMIT_CPU)[0] <= 23
