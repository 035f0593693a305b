"""From rescues to lines of preference pairs, off the event loop: a prompt may be long, and masking takes its time."""

from functools import partial
from typing import Final

from router_ext.config.sections import DpoExport as DpoConfig
from router_ext.dpo.making import LinesInMaking, LinesTelemetry
from router_ext.dpo.pair import Pair, Unfit, line_of, prompt_of, redacted_pair
from router_ext.dpo.paths import worker_path
from router_ext.dpo.writer import JsonLinesWriter
from router_ext.model.gate import ReadAnswer
from router_ext.ports import Clock, Rescue

SEVERAL: Final = "several_choices"
"""Why a rescue is no pair: an answer has several choices, of which not all need be bad."""

NO_TEXT: Final = "no_text"
"""Why a rescue is no pair: an answer of it is a tool call, or has no text."""


class DpoExport(LinesInMaking):
    """Implements ``ports.PairSink``."""

    def __init__(
        self, writer: JsonLinesWriter, telemetry: LinesTelemetry, clock: Clock, *, redact: bool = False
    ) -> None:
        super().__init__(writer, telemetry)
        self._clock = clock
        self._redact = redact

    def offer(self, rescue: Rescue) -> None:
        """See ``ports.PairSink``."""
        self.begin(partial(pair_line, rescue, self._clock.wall(), redact=self._redact))


def build_export(config: DpoConfig, telemetry: LinesTelemetry, clock: Clock, worker: int | None) -> DpoExport | None:
    """The export that a configuration asks for, into the file of ``worker`` where there are several; else None."""
    if not config.enabled:
        return None
    path = worker_path(config.output_path, worker)
    writer = JsonLinesWriter(path, config.max_file_size_mb * 1_000_000, config.max_files, telemetry, clock)
    return DpoExport(writer, telemetry, clock, redact=config.redact)


def pair_line(rescue: Rescue, timestamp: float, *, redact: bool) -> bytes | str:
    """The line of a rescue, or why it is no pair."""
    prompt = prompt_of(rescue.body.envelope.fields.get("messages"))
    if isinstance(prompt, Unfit):
        return prompt.value
    if len(rescue.chosen.choices) > 1 or len(rescue.rejected.choices) > 1:
        return SEVERAL
    chosen, rejected = _text(rescue.chosen), _text(rescue.rejected)
    if not chosen or not rejected:
        return NO_TEXT
    cheap, expensive = rescue.cheap, rescue.expensive
    pair = Pair(prompt, chosen, rejected, timestamp, cheap.backend, expensive.backend, rescue.reason, cheap.rule)
    return line_of(redacted_pair(pair) if redact else pair)


def _text(answer: ReadAnswer) -> str:
    """The text of the only choice; "" where it is a tool call or has none."""
    if not answer.choices or answer.choices[0].tool_calls:
        return ""
    return answer.choices[0].text or ""
