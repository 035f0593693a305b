"""DPO-04: lines were written in pieces, and half a line landed in each of two files at a rotation."""

import asyncio
from pathlib import Path

from router_ext.dpo.paths import worker_path
from router_ext.dpo.writer import JsonLinesWriter
from tests.fakes.clock import FakeClock
from tests.fakes.lines import RecordedWriter, files_of, numbered, numbers_in

LINES = 60
MIDNIGHT_S = 1_700_006_400.0
"""2023-11-15T00:00:00Z."""


async def test_all_lines_of_eight_writers_parse_and_are_there_once(tmp_path: Path) -> None:
    """Eight workers write lines of 1 to 9 KB to files of 10 KB. Their clock crosses midnight, which rotates nothing."""
    clock = FakeClock(wall_s=MIDNIGHT_S - 1)
    told = [RecordedWriter() for _ in range(8)]
    paths = [worker_path(tmp_path / "pairs.jsonl", worker) for worker in range(8)]
    writers = [JsonLinesWriter(path, 10_000, 1000, seen, clock) for path, seen in zip(paths, told, strict=True)]

    async def work(worker: int, writer: JsonLinesWriter) -> None:
        for number in range(LINES):
            assert writer.offer(numbered(worker * 1000 + number, 1000 + (worker + number * 3571) % 8001))
            clock.advance(0.1)
            await asyncio.sleep(0)
        await writer.close()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for worker, writer in enumerate(writers):
            group.create_task(writer.run())
            group.create_task(work(worker, writer))
    for worker, path in enumerate(paths):
        files = files_of(path)
        assert numbers_in(*files) == [worker * 1000 + number for number in range(LINES)]
        assert max(file.stat().st_size for file in files) <= 10_000
    assert [(seen.written, seen.dropped) for seen in told] == [(LINES, {})] * 8
