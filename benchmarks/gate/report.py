"""The figures as a table."""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.table import Row, lines

ROWS: Final = (
    Row("gate_cpu_ms_1kb", "processor CPU that a passing answer of 1 KB costs more, ms", 1.0),
    Row("gate_cpu_router_ms_1kb", "of it in router_ext's own process"),
    Row("gate_cpu_judges_ms_1kb", "of it in the judges"),
    Row("plain_cpu_ms_1kb", "the same request without the gate"),
    Row("gate_cpu_ms_100kb", "processor CPU that a passing answer of 100 KB costs more, ms", 5.0),
    Row("gate_cpu_router_ms_100kb", "of it in router_ext's own process"),
    Row("gate_cpu_judges_ms_100kb", "of it in the judges"),
    Row("plain_cpu_ms_100kb", "the same request without the gate"),
    Row("parallel_vs_fallback", "p50 of a bad answer in parallel mode against the fallback alone", 1.1),
    Row("fallback_p50_ms", "p50 of the fallback alone, ms"),
    Row("held_stream_added_ms", "p50 of a held stream's last byte beyond that of a plain one, ms"),
    Row("stream_p50_ms", "p50 of the plain one, ms"),
    Row("other_request_delay_ms_max", "largest delay by hostile schemas, median over rounds, ms", 50.0),
    Row("other_request_delay_ms_max_least", "least of the rounds with them beyond the least without, ms"),
)


def table(figures: Mapping[str, Any]) -> list[str]:
    """See ``lines``."""
    return lines(ROWS, figures)
