"""A live decision as one line."""

from datetime import UTC, datetime
from typing import Final

from rich.text import Text

from router_ext.v1 import decisions_pb2 as pb

_PIN_STYLES: Final = {"hit": "green", "miss": "yellow"}

_NOTHING: Final = "-"


def event_line(event: pb.WatchEvent) -> Text:
    """Time in UTC, status, service, rule, backend, pin, time to the first token, tokens, cost, attempts."""
    decision, line = event.decision, Text()
    ended = event.HasField("settlement")
    line.append(_clock(decision.time.ToDatetime(UTC)), "dim")
    line.append(f" {_status(event):>4} ", _status_style(event))
    line.append(f"{decision.request.service or _NOTHING} ", "cyan")
    line.append(f"{decision.rule or _NOTHING} ", "magenta")
    line.append(_where(event), "bold")
    if ended:
        _append_end(line, event.settlement)
    elif event.HasField("refusal"):
        line.append(f" {event.refusal.code}", "red")
    return line


def _append_end(line: Text, end: pb.Settlement) -> None:
    line.append(f" pin={end.pin or _NOTHING}", _PIN_STYLES.get(end.pin, "dim"))
    ttft = f"{end.ttft_ms:.0f}ms" if end.HasField("ttft_ms") else _NOTHING
    line.append(f" ttft={ttft} tokens={_tokens(end)} cost=${end.cost_micro_usd / 1e6:.6f}")
    line.append(f" attempts={end.attempts}", "yellow" if end.attempts > 1 else "")
    if end.failure:
        line.append(f" {end.failure}", "red")


def _clock(time: datetime) -> str:
    return f"{time:%H:%M:%S}.{time.microsecond // 1000:03}"


def _status(event: pb.WatchEvent) -> str:
    if event.HasField("settlement"):
        return str(event.settlement.status or _NOTHING)
    return str(event.refusal.status) if event.HasField("refusal") else "…"


def _status_style(event: pb.WatchEvent) -> str:
    status = event.settlement.status or event.refusal.status
    if not event.HasField("settlement") and not event.HasField("refusal"):
        return "dim"
    return "green" if 200 <= status < 400 else "yellow" if 400 <= status < 500 else "red"


def _where(event: pb.WatchEvent) -> str:
    end = event.settlement
    if not event.HasField("settlement"):
        return event.decision.backend or _NOTHING
    return f"{'+'.join(end.also_asked)}→{end.backend}" if end.also_asked else end.backend


def _tokens(end: pb.Settlement) -> str:
    if not end.HasField("usage"):
        return _NOTHING
    usage = end.usage
    cached = f"({usage.cached_tokens})" if usage.HasField("cached_tokens") else ""
    return f"{'~' if usage.estimated else ''}{usage.prompt_tokens}{cached}+{usage.completion_tokens}"
