"""From rescues to lines of preference pairs, off the event loop: a prompt may be long, and masking takes its time."""

import asyncio
from typing import Final, Protocol

from router_ext.config.sections import DpoExport as DpoConfig
from router_ext.dpo.pair import Pair, Unfit, line_of, prompt_of, redacted_pair
from router_ext.dpo.paths import worker_path
from router_ext.dpo.writer import Dropped, JsonLinesWriter, WriterTelemetry
from router_ext.model.gate import ReadAnswer
from router_ext.ports import Clock, Rescue

MAX_MAKING: Final = 64
"""Most lines that are made at a time. Each holds on to the body of a request."""

SEVERAL: Final = "several_choices"
"""Why a rescue is no pair: an answer has several choices, of which not all need be bad."""

NO_TEXT: Final = "no_text"
"""Why a rescue is no pair: an answer of it is a tool call, or has no text."""


class ExportTelemetry(Protocol):
    """What became of rescues that gave no line. Cheap, never raises."""

    def pair_unfit(self, reason: str) -> None:
        """A rescue is no pair: one of ``Unfit``, ``SEVERAL`` or ``NO_TEXT``."""
        ...

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """So many lines (≥ 1) were given up."""
        ...


class GateTelemetry(ExportTelemetry, WriterTelemetry, Protocol):
    """All of it."""


class DpoExport:
    """Implements ``ports.PairSink``. Used from one event loop."""

    def __init__(
        self, writer: JsonLinesWriter, telemetry: ExportTelemetry, clock: Clock, *, redact: bool = False
    ) -> None:
        self._writer = writer
        self._telemetry = telemetry
        self._clock = clock
        self._redact = redact
        self._making: set[asyncio.Task[None]] = set()

    def offer(self, rescue: Rescue) -> None:
        """See ``ports.PairSink``."""
        if len(self._making) >= MAX_MAKING:
            self._telemetry.lines_dropped(Dropped.QUEUE_FULL, 1)
            return
        task = asyncio.create_task(self._make(rescue, self._clock.wall()), name="dpo-line")
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    async def run(self) -> None:
        """Writes until cancelled."""
        await self._writer.run()

    async def close(self) -> None:
        """Writes what was offered before."""
        if self._making:
            await asyncio.gather(*self._making)
        await self._writer.close()

    async def _make(self, rescue: Rescue, now: float) -> None:
        made = await asyncio.to_thread(pair_line, rescue, now, redact=self._redact)
        if isinstance(made, bytes):
            self._writer.offer(made)
        else:
            self._telemetry.pair_unfit(made)


def build_export(config: DpoConfig, telemetry: GateTelemetry, clock: Clock, worker: int | None) -> DpoExport | None:
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
