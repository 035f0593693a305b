"""Schemas and texts that are made to do harm: bounded time, a free event loop, nothing fetched, nothing out of step."""

import asyncio
import json
import os
import signal
import socket
import time
from typing import Any

import psutil
import pytest

from router_ext.model.gate import SchemaVerdict
from router_ext.schemas.court import JudgeLoss
from tests.schemas.courts import ENDLESS, MAX_LAG_S, Court, bomb, lag, open_court, schema_text, until

LOOK_AROUND = {"pattern": "^(?:(?=a)a+)+$"}
"""Gives up after a million steps, about 20 ms."""

LOOK_AROUNDS = {"anyOf": [{"pattern": f"^(?:(?=a)a+)+{n}$"} for n in range(110)]}
"""110 times as much."""

REPEATED_A = json.dumps("a" * 60 + "!")


def repeated(combinator: str) -> Any:
    """Each level twice, so that the innermost schema is tried 2 to the power of 40 times."""
    definitions: dict[str, Any] = {f"a{n}": {combinator: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$defs": {**definitions, "a40": {"type": "integer"}}, "$ref": "#/$defs/a0"}


async def goes_on(court: Court) -> None:
    """Verdicts still belong to their questions."""
    for number in range(10):
        assert await court.judge({"const": number}, str(number)) is SchemaVerdict.VALID
        assert await court.judge({"const": number}, "-1") is SchemaVerdict.INVALID


async def assert_loop_is_free(court: Court, schema: Any, text: str, expected: SchemaVerdict) -> None:
    """At most 50 ms of lag in one of five rounds: another process may hold one up, a blocked loop shows in each."""
    for _ in range(5):
        with lag() as longest:
            assert await court.judge(schema, text) is expected
        if longest() < MAX_LAG_S:
            return
    raise AssertionError(f"the event loop was held up for {longest():.3f} s")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        pytest.param(ENDLESS, '"x"', id="allOf"),
        pytest.param(repeated("anyOf"), '"x"', id="anyOf"),
        pytest.param(repeated("oneOf"), "1", id="oneOf"),
        pytest.param(LOOK_AROUNDS, REPEATED_A, id="look-around"),
    ],
)
async def test_what_takes_too_long_ends_by_the_deadline_without_blocking_the_loop(schema: Any, text: str) -> None:
    """TIMEOUT, at most 50 ms of lag meanwhile, and the next judgement by a judge that stood by."""
    assert len(schema_text(schema).text) <= 4096
    async with open_court(judges=1, deadline_s=0.5) as court:
        await court.judge(True, "1")
        began = time.monotonic()
        assert await court.judge(schema, text) is SchemaVerdict.TIMEOUT
        assert 0.5 <= time.monotonic() - began < 1.5
        await assert_loop_is_free(court, schema, text, SchemaVerdict.TIMEOUT)
        assert set(court.losses) == {JudgeLoss.DEADLINE}
        await goes_on(court)


async def test_a_pattern_that_backtracks_elsewhere_is_quick() -> None:
    """2 to the power of 40 steps by a backtracking engine, 41 by the linear one."""
    async with open_court(judges=1, deadline_s=5.0) as court:
        await court.judge(True, "1")
        text = json.dumps("a" * 40 + "!")
        await assert_loop_is_free(court, {"pattern": "^(a+)+$"}, text, SchemaVerdict.INVALID)
        assert court.losses == []


async def test_one_pattern_that_backtracks_gives_up_before_the_deadline() -> None:
    """By its number of steps: the judge lives on."""
    async with open_court(judges=1) as court:
        assert await court.judge(LOOK_AROUND, REPEATED_A) is SchemaVerdict.TIMEOUT
        assert court.losses == []
        await goes_on(court)


async def test_a_schema_that_is_slow_to_compile_ends_by_the_deadline() -> None:
    """2,000 patterns of 1,000 states take seconds."""
    patterns = {f"^([a-z]{{100}}){{10}}{n}$": True for n in range(2_000)}
    async with open_court(judges=1, deadline_s=0.2) as court:
        await court.judge(True, "1")
        assert await court.judge({"patternProperties": patterns}, "{}") is SchemaVerdict.TIMEOUT
        assert court.losses == [JudgeLoss.DEADLINE]


async def test_definitions_that_refer_to_each_other_are_a_bad_schema() -> None:
    """Through ``allOf``, on the same value."""
    mutual = {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}
    async with open_court(judges=1) as court:
        assert await court.judge({"$defs": mutual, "$ref": "#/$defs/a"}, "{}") is SchemaVerdict.BAD_SCHEMA
        assert court.losses == []


async def test_nothing_is_fetched() -> None:
    """No connection for any keyword that holds a URI; an id is a name and no harm."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        async with open_court(judges=1) as court:
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef", "$schema"):
                assert await court.judge({keyword: uri}, "{}") is SchemaVerdict.BAD_SCHEMA
            assert await court.judge({"$id": uri, "$ref": "other.json"}, "{}") is SchemaVerdict.BAD_SCHEMA
            assert await court.judge({"$id": uri, "$ref": "#/$defs/a", "$defs": {"a": {}}}, "{}") is SchemaVerdict.VALID
            assert await court.judge({"$ref": "file:///etc/passwd"}, "{}") is SchemaVerdict.BAD_SCHEMA
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_a_text_that_needs_too_much_memory_costs_a_judge() -> None:
    """24 MB become 8 million lists, more than a judge may hold. The router holds the text only."""
    async with open_court(judges=1) as court:
        assert await court.court.judge(None, "[" + "[]," * 8_000_000 + "1]") is SchemaVerdict.TIMEOUT
        assert court.losses == [JudgeLoss.DIED]
        await goes_on(court)


async def test_a_judge_that_has_become_large_is_replaced_after_its_verdict() -> None:
    """What it holds would be missing for the next text."""
    async with open_court(judges=1) as court:
        assert await court.court.judge(None, "[" + "[]," * 2_800_000 + "1]") is SchemaVerdict.VALID
        assert court.losses == [JudgeLoss.WORN]
        await goes_on(court)


async def test_a_judge_that_is_killed_at_work_is_replaced() -> None:
    """By whomever. The caller has no answer."""
    async with open_court(judges=1) as court:
        verdict = asyncio.create_task(court.judge(ENDLESS, '"x"'))
        pid = await court.judge_at_work()
        os.kill(pid, signal.SIGKILL)
        assert await verdict is SchemaVerdict.TIMEOUT
        assert court.losses == [JudgeLoss.DIED]
        assert pid not in court.court.pids
        await goes_on(court)


async def test_judges_that_died_at_rest_get_no_work() -> None:
    """No caller notices, also when all are gone."""
    async with open_court(judges=2) as court:
        await court.judge(True, "1")
        await until(lambda: len(court.court.pids) == 3)
        pids = court.court.pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not any(map(psutil.pid_exists, pids)))
        await goes_on(court)
        assert set(court.losses) == {JudgeLoss.DIED}


async def test_a_caller_that_leaves_takes_its_judge_along() -> None:
    """A reply that nobody waits for must not become the next caller's."""
    async with open_court(judges=1) as court:
        leaving = asyncio.create_task(court.judge(ENDLESS, '"x"'))
        pid = await court.judge_at_work()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert court.losses == [JudgeLoss.ABANDONED]
        await until(lambda: not psutil.pid_exists(pid))
        await goes_on(court)


async def test_callers_that_leave_at_any_moment_harm_nobody() -> None:
    """Each of 60 callers is cancelled some steps of the event loop after its start, while others are judged."""

    async def leave(court: Court, steps: int) -> None:
        task = asyncio.create_task(court.judge({"const": -steps}, str(-steps)))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with open_court(judges=2) as court:
        async with asyncio.TaskGroup() as group:
            for steps in range(60):
                group.create_task(leave(court, steps))
            group.create_task(goes_on(court))
        await goes_on(court)
        await until(lambda: len(court.court.pids) == 3)


async def test_waiting_for_a_judge_is_bounded() -> None:
    """A caller that gives up disturbs nobody, nor does one that leaves while it waits."""
    async with open_court(judges=1, wait_s=0.2) as court:
        await until_first_verdict(court)
        busy = asyncio.create_task(court.judge(ENDLESS, '"x"'))
        await court.judge_at_work()
        waiting = asyncio.create_task(court.judge(True, "1"))
        leaving = asyncio.create_task(court.judge(True, "1"))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await waiting is SchemaVerdict.TIMEOUT
        assert not busy.done()
        assert court.losses == []
        busy.cancel()
        await asyncio.wait([busy, leaving])
        await until_first_verdict(court)
        await goes_on(court)


async def test_one_bad_caller_does_not_keep_the_others_waiting() -> None:
    """With a judge left, 100 judgements end while an endless one goes on."""
    async with open_court(judges=2) as court:
        busy = asyncio.create_task(court.judge(bomb(55), '"x"'))
        await court.judge_at_work()
        async with asyncio.timeout(10):
            verdicts = await asyncio.gather(*(court.judge({"const": n}, str(n)) for n in range(100)))
        assert verdicts == [SchemaVerdict.VALID] * 100
        assert not busy.done()
        busy.cancel()


async def until_first_verdict(court: Court) -> None:
    """Judges may take longer to start than a caller waits."""
    async with asyncio.timeout(20):
        while await court.judge(True, "1") is SchemaVerdict.TIMEOUT:
            pass
