"""The queue, the one task that writes, and what is told of it. Files are real."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from router_ext.dpo import writer as writing
from router_ext.dpo.writer import JsonLinesWriter
from tests.fakes.clock import FakeClock
from tests.fakes.lines import RecordedWriter, files_of, numbered, numbers_in

MB = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """In a folder that is not there yet."""
    return tmp_path / "data" / "pairs.jsonl"


def _writer(path: Path, told: RecordedWriter, max_bytes: int = MB, max_files: int = 10) -> JsonLinesWriter:
    return JsonLinesWriter(path, max_bytes, max_files, told, FakeClock())


@contextlib.asynccontextmanager
async def _running(writer: JsonLinesWriter) -> AsyncIterator[asyncio.Task[None]]:
    """Runs the writer, and closes it in the end."""
    async with asyncio.timeout(30):
        task = asyncio.create_task(writer.run())
        yield task
        await writer.close()
        await task


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - a file has no event of its own
            await asyncio.sleep(0.001)


async def test_what_is_offered_is_in_the_file_after_close(path: Path) -> None:
    """In the order of the offers, and counted."""
    told = RecordedWriter()
    writer = _writer(path, told)
    async with _running(writer):
        assert all(writer.offer(numbered(number)) for number in range(1000))
    assert numbers_in(path) == list(range(1000))
    assert (told.written, told.dropped, told.told) == (1000, {}, [])


async def test_lines_are_written_while_others_come(path: Path) -> None:
    """A line does not wait for the end."""
    told = RecordedWriter()
    writer = _writer(path, told)
    async with _running(writer):
        for number in range(3):
            writer.offer(numbered(number))
            await _until(lambda written=number + 1: told.written == written)  # type: ignore[misc]
            assert numbers_in(path) == list(range(number + 1))


async def test_an_offer_never_waits_for_the_disk(path: Path) -> None:
    """Nothing is written before the event loop goes on, and nothing has to run at all."""
    told = RecordedWriter()
    writer = _writer(path, told)
    assert writer.offer(numbered(0))
    assert files_of(path) == []


async def test_a_full_queue_drops_lines_and_says_so_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that is dropped is counted. With room for two lines of 100 bytes the third has none."""
    monkeypatch.setattr(writing, "MAX_QUEUED_BYTES", 2 * (100 + writing.LINE_BYTES))
    told = RecordedWriter()
    writer = _writer(path, told)
    assert [writer.offer(numbered(number, 99)) for number in range(4)] == [True, True, False, False]
    assert (told.dropped, told.told) == ({"queue_full": 2}, ["pairs.jsonl failing: queue_full"])
    async with _running(writer):
        await _until(lambda: told.written == 2 and len(told.told) == 2)
        assert told.told[1:] == ["pairs.jsonl recovered: queue_full"]
        assert writer.offer(numbered(4, 99))
    assert numbers_in(path) == [0, 1, 4]


async def test_a_line_that_fits_into_no_file_is_dropped(path: Path) -> None:
    """With its newline a line may be as long as a file."""
    told = RecordedWriter()
    writer = _writer(path, told, max_bytes=100)
    async with _running(writer):
        assert writer.offer(numbered(0, 99))
        assert not writer.offer(numbered(1, 100))
    assert numbers_in(path) == [0]
    assert (told.dropped, told.told) == ({"too_long": 1}, [])


async def test_nothing_is_taken_after_close(path: Path) -> None:
    """It would never be written."""
    told = RecordedWriter()
    writer = _writer(path, told)
    async with _running(writer):
        pass
    assert not writer.offer(numbered(0))
    assert told.dropped == {"closed": 1}


async def test_a_torn_line_is_cut_off_at_the_start(path: Path) -> None:
    """Before any line comes."""
    _left(path, b'{"n":0}\n{"n":')
    told = RecordedWriter()
    async with _running(_writer(path, told)):
        await _until(lambda: bool(told.told))
        assert numbers_in(path) == [0]
    assert told.told == ["pairs.jsonl torn: 5"]


def _left(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)


async def test_a_disk_that_fails_is_told_once_and_tried_with_every_batch(path: Path) -> None:
    """A folder in the file's place; when it is gone lines are written again."""
    os.makedirs(path)
    told = RecordedWriter()
    writer = _writer(path, told)
    async with _running(writer):
        for number in range(3):
            writer.offer(numbered(number))
            await _until(lambda dropped=number + 1: told.dropped == {"disk": dropped})  # type: ignore[misc]
        assert told.told == ["pairs.jsonl failing: disk EISDIR"]
        os.rmdir(path)
        writer.offer(numbered(3))
        await _until(lambda: told.written == 1)
    assert told.told[1:] == ["pairs.jsonl recovered: disk"]
    assert numbers_in(path) == [3]


async def test_many_producers_lose_nothing_over_rotations(path: Path) -> None:
    """8 tasks offer lines of 1 to 9 KB to files of 10 KB: each line is there once, in the order of its producer."""
    told = RecordedWriter()
    writer = _writer(path, told, max_bytes=10_000, max_files=1000)

    async def produce(producer: int) -> None:
        for number in range(100):
            size = 1000 + (producer * 4057 + number * 1777) % 8001
            assert writer.offer(numbered(producer * 1000 + number, size))
            await asyncio.sleep(0)

    async with _running(writer):
        async with asyncio.TaskGroup() as group:
            for producer in range(8):
                group.create_task(produce(producer))
        # Hundreds of rotations, each with two calls of fsync: a busy disk takes longer than ``close`` waits.
        await _until(lambda: told.written == 800)
    numbers = numbers_in(*files_of(path))
    assert sorted(numbers) == [producer * 1000 + number for producer in range(8) for number in range(100)]
    for producer in range(8):
        own = [number for number in numbers if number // 1000 == producer]
        assert own == sorted(own)
    assert max(file.stat().st_size for file in files_of(path)) <= 10_000


@pytest.mark.parametrize("cancelled", [True, False])
async def test_close_writes_what_waits_without_the_task(path: Path, cancelled: bool) -> None:
    """Whether the task was cancelled, in the middle of a batch even, or never ran."""
    told = RecordedWriter()
    writer = _writer(path, told)
    for number in range(10):
        writer.offer(numbered(number, 300_000))
    if cancelled:
        task = asyncio.create_task(writer.run())
        await _until(path.exists)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    await writer.close()
    assert numbers_in(*files_of(path)) == list(range(10))
    assert told.written == 10


async def test_close_does_not_wait_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that hangs: a pipe in the file's place, which nobody reads. What still waits is given up; what the disk
    took after all is counted.
    """
    monkeypatch.setattr(writing, "DRAIN_S", 0.05)
    told = RecordedWriter()
    writer = _writer(path, told)
    os.mkdir(path.parent)
    os.mkfifo(path)
    for number in range(4):
        writer.offer(numbered(number, 900_000))
    task = asyncio.create_task(writer.run())
    await writer.close()
    dropped = dict(told.dropped)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    await _until(lambda: not _read_some(reader) and told.written == 2)
    os.close(reader)
    await task
    assert dropped == {"closed": 2}


def _read_some(pipe: int) -> bytes:
    try:
        return os.read(pipe, 1 << 20)
    except BlockingIOError:
        return b""
