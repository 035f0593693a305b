"""GATE-08: a schema of 91 bytes with a pattern that backtracks froze the event loop for 12.7 s."""

import asyncio
import json

from router_ext.model.gate import SchemaText, SchemaVerdict
from router_ext.schemas.limits import SchemaRefusal, check_schema
from tests.schemas.courts import ENDLESS, MAX_LAG_S, Court, lag, open_court, schema_text

BACKTRACKING = SchemaText(b'{"type": "string", "pattern": "^(a+)+$"}')
REPLY = '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"'


async def both(court: Court) -> tuple[SchemaVerdict, SchemaVerdict]:
    """Judged at the same time."""
    async with asyncio.TaskGroup() as group:
        pattern = group.create_task(court.court.judge(BACKTRACKING, REPLY))
        combinators = group.create_task(court.judge(ENDLESS, '"x"'))
    return pattern.result(), combinators.result()


async def test_other_streams_keep_their_pace_while_bad_schemas_are_judged() -> None:
    """The pattern is refuted in linear time, nested combinators end by the deadline, and the loop lags under 50 ms."""
    async with open_court(judges=2, deadline_s=0.5) as court:
        await court.judge(True, "1")
        lags: list[float] = []
        # Another process may hold up one round; a blocked loop shows in each.
        while len(lags) < 5 and min(lags, default=1.0) >= MAX_LAG_S:
            with lag() as longest:
                assert await both(court) == (SchemaVerdict.INVALID, SchemaVerdict.TIMEOUT)
            lags.append(longest())
        assert min(lags) < MAX_LAG_S


def test_size_depth_and_combinators_are_limited() -> None:
    """Before anything is compiled."""
    assert len(schema_text(ENDLESS).text) < 4096
    assert check_schema(b"{}" + b" " * 65_536) is SchemaRefusal.TOO_LARGE
    assert check_schema(b'{"not":' * 64 + b"{}" + b"}" * 64) is SchemaRefusal.TOO_DEEP
    assert check_schema(json.dumps({"anyOf": [{}] * 1_001}).encode()) is SchemaRefusal.TOO_MANY_BRANCHES
