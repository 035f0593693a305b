"""From comparisons to lines in a file. Files are real."""

import asyncio
from pathlib import Path

import pytest

from router_ext.config.sections import DpoExport, QualityGate, RouterConfig
from router_ext.dpo.making import MAX_MAKING
from router_ext.dpo.shadow_log import ShadowLog, build_shadow_log, comparison_line
from router_ext.dpo.writer import JsonLinesWriter
from router_ext.model.outcome import Usage
from router_ext.model.shadow import Comparison, VariantAnswer
from tests.fakes.clock import FakeClock
from tests.fakes.lines import RecordedWriter

COMPARISON = Comparison(
    "t",
    "d-1",
    1_700_000_000.25,
    VariantAnswer("large", "mail me@example.org", 1.5, Usage(8, 2), 100, valid=True),
    VariantAnswer("small", "no", 0.25),
    1 / 3,
    None,
)
LINE = (
    b'{"test":"t","decision_id":"d-1","timestamp":"2023-11-14T22:13:20.250Z","similarity":0.333333,'
    b'"length_ratio":null,"a":{"backend":"large","text":"mail me@example.org","took_ms":1500.0,"prompt_tokens":8,'
    b'"completion_tokens":2,"cost_micro_usd":100,"valid":true},"b":{"backend":"small","text":"no","took_ms":250.0,'
    b'"prompt_tokens":null,"completion_tokens":null,"cost_micro_usd":null,"valid":null}}'
)


def _log(path: Path, told: RecordedWriter) -> ShadowLog:
    return ShadowLog(JsonLinesWriter(path, 1_000_000, 10, told, FakeClock()), told)


@pytest.mark.parametrize(("redact", "text"), [(False, b"mail me@example.org"), (True, b"mail [EMAIL]")])
def test_a_line_has_both_answers_and_what_compares_them(redact: bool, text: bytes) -> None:
    """Masked as preference pairs are, if they are."""
    assert comparison_line(COMPARISON, redact=redact) == LINE.replace(b"mail me@example.org", text)


async def test_comparisons_become_lines_of_the_file(tmp_path: Path) -> None:
    """Those that were offered before the end are all there."""
    told, path = RecordedWriter(), tmp_path / "shadows.jsonl"
    log = _log(path, told)
    running = asyncio.create_task(log.run())
    log.offer(COMPARISON)
    log.offer(COMPARISON)
    await log.close()
    await running
    assert (path.read_bytes(), told.written) == ((LINE + b"\n") * 2, 2)


async def test_only_so_many_lines_are_made_at_a_time(tmp_path: Path) -> None:
    """Each holds on to two answers: what comes beyond that is dropped and counted."""
    told = RecordedWriter()
    log = _log(tmp_path / "shadows.jsonl", told)
    for _ in range(MAX_MAKING + 1):
        log.offer(COMPARISON)
    await log.close()
    assert (MAX_MAKING, told.written, told.dropped) == (64, 64, {"queue_full": 1})


async def test_the_log_is_off_unless_a_path_is_given(tmp_path: Path) -> None:
    """Each worker has a file of its own; masking is that of pairs, also while these are off."""
    told = RecordedWriter()
    assert build_shadow_log(RouterConfig(), told, FakeClock(), None) is None
    gate = QualityGate(dpo_export=DpoExport(redact=True))
    config = RouterConfig(quality_gate=gate, shadow_log_path=tmp_path / "shadows.jsonl")
    log = build_shadow_log(config, told, FakeClock(), 2)
    assert log is not None
    log.offer(COMPARISON)
    await log.close()
    assert b"[EMAIL]" in (tmp_path / "shadows.w2.jsonl").read_bytes()
