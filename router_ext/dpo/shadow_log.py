"""The answers that shadows compared as lines of JSON, made off the event loop as pairs are."""

from functools import partial

from router_ext.config.sections import RouterConfig
from router_ext.dpo.making import LinesInMaking, LinesTelemetry
from router_ext.dpo.pair import json_line, written_time
from router_ext.dpo.paths import worker_path
from router_ext.dpo.redact import redacted
from router_ext.dpo.writer import JsonLinesWriter
from router_ext.model.shadow import Comparison, VariantAnswer
from router_ext.ports import Clock


class ShadowLog(LinesInMaking):
    """Implements ``ports.ShadowSink``."""

    def __init__(self, writer: JsonLinesWriter, telemetry: LinesTelemetry, *, redact: bool = False) -> None:
        super().__init__(writer, telemetry)
        self._redact = redact

    def offer(self, comparison: Comparison) -> None:
        """See ``ports.ShadowSink``."""
        self.begin(partial(comparison_line, comparison, redact=self._redact))


def build_shadow_log(
    config: RouterConfig, telemetry: LinesTelemetry, clock: Clock, worker: int | None
) -> ShadowLog | None:
    """The log that a configuration asks for, into the file of ``worker`` where there are several; else None. Size and
    number of files and masking are those of ``quality_gate.dpo_export``, enabled or not.
    """
    if config.shadow_log_path is None:
        return None
    export = config.quality_gate.dpo_export
    path = worker_path(config.shadow_log_path, worker)
    writer = JsonLinesWriter(path, export.max_file_size_mb * 1_000_000, export.max_files, telemetry, clock)
    return ShadowLog(writer, telemetry, redact=export.redact)


def comparison_line(comparison: Comparison, *, redact: bool) -> bytes:
    """The line of a comparison in UTF-8, without a line end. Each field has one type in all lines, or is null."""
    return json_line(
        {
            "test": comparison.test,
            "decision_id": comparison.decision_id,
            "timestamp": written_time(comparison.time_s),
            "similarity": round(comparison.similarity, 6),
            "length_ratio": None if comparison.length_ratio is None else round(comparison.length_ratio, 6),
            "a": _answer(comparison.a, redact=redact),
            "b": _answer(comparison.b, redact=redact),
        }
    )


def _answer(answer: VariantAnswer, *, redact: bool) -> dict[str, object]:
    usage = answer.usage
    return {
        "backend": answer.backend,
        "text": redacted(answer.text) if redact else answer.text,
        "took_ms": round(answer.took_s * 1_000, 3),
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "completion_tokens": None if usage is None else usage.completion_tokens,
        "cost_micro_usd": answer.cost_micro_usd,
        "valid": answer.valid,
    }
