"""Lines that are made in threads."""

from pathlib import Path

from router_ext.dpo.making import LinesInMaking
from router_ext.dpo.writer import JsonLinesWriter
from tests.fakes.clock import FakeClock
from tests.fakes.lines import RecordedWriter


def _broken() -> bytes:
    raise ValueError("a bug")


async def test_a_bug_costs_its_line_and_is_told(tmp_path: Path) -> None:
    """The others are written, and ``close`` does not raise."""
    told, path = RecordedWriter(), tmp_path / "lines.jsonl"
    lines = LinesInMaking(JsonLinesWriter(path, 1_000_000, 10, told, FakeClock()), told)
    for make in (lambda: b"1", _broken, lambda: "unfit", lambda: b"2"):
        lines.begin(make)
    await lines.close()
    assert sorted(path.read_bytes().splitlines()) == [b"1", b"2"]
    assert [str(error) for error in told.bugs] == ["a bug"]
    assert (told.unfit, told.written) == (["unfit"], 2)
