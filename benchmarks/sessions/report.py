"""The figures as a table."""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.table import Row, lines

ROWS: Final = (
    Row("upload_bytes_max", "largest upload of a turn with a 300-byte message, bytes with headers", 999),
    Row("upload_bytes_openai", "the same with the headers of the openai package"),
    Row("upload_bytes_full", "largest upload without a session"),
    Row("hydrated_p50_ratio", "p50 of a hydrated turn against sending 400 KB", 1.0),
    Row("hydrated_p50_ms", "p50 of a hydrated turn, ms"),
    Row("full_p50_ms", "p50 of sending 400 KB, ms"),
    Row("other_answers", "turns whose backend got another context", 0),
    Row("store_sessions", "sessions of 400 KB in a store"),
    Row("store_overhead_ratio", "memory store: resident bytes for a byte of messages", 1.2),
    Row("store_process_ratio", "the same with all else in the process"),
    Row("valkey_overhead_ratio", "Valkey: used_memory for a byte of messages"),
    Row("acknowledged_turns", "turns acknowledged while router_ext is killed"),
    Row("lost_turns", "of these not in their session", 0),
    Row("duplicate_turns", "stored twice, after a try that was not acknowledged"),
    Row("foreign_turns", "stored in another session", 0),
    Row("disordered_turns", "stored before an earlier turn", 0),
    Row("malformed_sessions", "sessions that are not user and assistant in turn", 0),
    Row("gave_up", "conversations that got no answer within 30 s", 0),
    Row("unexpected_tries", "failed tries that were neither a 503 nor cut off", 0),
    Row("unclaimed_sessions", "sessions of first turns that were not acknowledged"),
    Row("turns_per_s", "turns a second, kills included"),
    Row("turn_p50_s", "p50 of a turn with all tries, s"),
    Row("turn_max_s", "slowest turn with all tries, s"),
)


def table(figures: Mapping[str, Any]) -> list[str]:
    """See ``lines``."""
    return lines(ROWS, figures)


def broken(figures: Mapping[str, Any]) -> list[str]:
    """Names of the figures that should be 0 and are not."""
    return [row.name for row in ROWS if row.most == 0 and figures.get(row.name, 0)]
