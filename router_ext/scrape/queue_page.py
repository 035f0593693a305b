"""Queue depth from an engine's metrics page.

Only lines with a wanted name reach the parser, so nothing else on a page can spoil it, and a page of 60 KB costs less
than a millisecond. What is not a finite number, or is below zero, is not known; a page that tells neither of its two
queues tells nothing, which is not the same as no load.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from router_ext.health.load import QueueReading
from router_ext.model.backend import BackendType


class PageNames(Struct, frozen=True):
    """The sample names of one engine type. Of several names for one thing a page may carry any or all."""

    waiting: str
    running: str
    kv_usage: tuple[str, ...]
    prompt_tokens: str
    start_time: tuple[str, ...] = ()
    """Best first: the first one on the page counts."""

    @property
    def wanted(self) -> frozenset[str]:
        """Every name."""
        return frozenset((self.waiting, self.running, self.prompt_tokens, *self.kv_usage, *self.start_time))


PAGE_NAMES: Final[dict[BackendType, PageNames]] = {
    BackendType.VLLM: PageNames(
        waiting="vllm:num_requests_waiting",
        running="vllm:num_requests_running",
        kv_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        prompt_tokens="vllm:prompt_tokens_total",
        start_time=("process_start_time_seconds", "vllm:prompt_tokens_created"),
    ),
    BackendType.SGLANG: PageNames(
        waiting="sglang:num_queue_reqs",
        running="sglang:num_running_reqs",
        kv_usage=("sglang:token_usage",),
        prompt_tokens="sglang:prompt_tokens_total",
        start_time=("process_start_time_seconds", "sglang:prompt_tokens_created"),
    ),
    BackendType.LLAMACPP: PageNames(
        waiting="llamacpp:requests_deferred",
        running="llamacpp:requests_processing",
        kv_usage=("llamacpp:kv_cache_usage_ratio",),
        prompt_tokens="llamacpp:prompt_tokens_total",
    ),
}
"""The engine types that have such a page. ``vllm:gpu_cache_usage_perc`` is the name that older versions use."""

_MODEL: Final = "model_name"
_WITHIN_ENGINE: Final = frozenset({"pid", "tp_rank", "pp_rank", "moe_ep_rank", "priority"})
"""Labels that tell series of one engine apart. Its processes and ranks repeat one queue or show zero; series by
priority stand beside their total. The greatest of them is the engine's figure.
"""

_NAME: Final = re.compile(r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)")


class QueuePage(Struct, frozen=True):
    """A page that was read. ``reading`` is None when it tells no load.

    ``errors`` counts what cannot be used: lines without a readable number, needed values below zero, cache usages above
    1. Values that are not finite are no errors.
    """

    reading: QueueReading | None
    errors: int = 0


class _Sample(Struct, frozen=True):
    name: str
    labels: dict[str, str]
    value: float

    @property
    def engine(self) -> frozenset[tuple[str, str]]:
        """What names the engine: every label that does not tell its own series apart."""
        return frozenset(item for item in self.labels.items() if item[0] not in _WITHIN_ENGINE)


def read_queue_page(page: bytes, names: PageNames, model: str = "") -> QueuePage:
    """The load on a page in Prometheus or OpenMetrics text. Never raises.

    Engines are summed, their cache usage is the highest. When ``model`` is among the page's models, series of others
    do not count. A queue that is absent beside the other one counts 0; all else may be absent.
    """
    found, errors = _wanted_samples(page.decode(errors="replace"), names.wanted)
    samples = _of_model(found, model)
    waiting = _per_engine(samples, names.waiting)
    running = _per_engine(samples, names.running)
    ratios = [sample.value for sample in samples if sample.name in names.kv_usage]
    usable = [ratio for ratio in ratios if ratio <= 1]
    errors += len(ratios) - len(usable)
    if not waiting and not running:
        return QueuePage(None, errors)
    reading = QueueReading(
        waiting=sum(waiting),
        running=sum(running),
        kv_usage=max(usable, default=None),
        start_time=_start_time(samples, names.start_time),
        prompt_tokens=_total(samples, names.prompt_tokens),
    )
    return QueuePage(reading, errors)


def _wanted_samples(text: str, wanted: frozenset[str]) -> tuple[list[_Sample], int]:
    samples: list[_Sample] = []
    errors = 0
    for line in text.split("\n"):
        if line.lstrip()[:1] in ("", "#"):
            continue
        name = _NAME.match(line)
        try:
            if name is not None and name[1] in wanted:
                samples.extend(_parse(line))
            else:
                float(line.rsplit(None, 1)[-1])
        except (ValueError, OverflowError):
            errors += 1
    finite = [sample for sample in samples if math.isfinite(sample.value)]
    usable = [sample for sample in finite if sample.value >= 0]
    return usable, errors + len(finite) - len(usable)


def _parse(line: str) -> Iterator[_Sample]:
    """The samples of one line. Raises ValueError, and OverflowError for integers beyond a float."""
    for family in text_string_to_metric_families(line):
        for sample in family.samples:
            yield _Sample(sample.name, sample.labels, float(sample.value))


def _of_model(samples: list[_Sample], model: str) -> list[_Sample]:
    if not any(sample.labels.get(_MODEL) == model for sample in samples):
        return samples
    return [sample for sample in samples if sample.labels.get(_MODEL, model) == model]


def _per_engine(samples: Iterable[_Sample], name: str) -> list[float]:
    engines: dict[frozenset[tuple[str, str]], float] = {}
    for sample in samples:
        if sample.name == name:
            engines[sample.engine] = max(sample.value, engines.get(sample.engine, 0.0))
    return list(engines.values())


def _total(samples: Iterable[_Sample], name: str) -> float | None:
    values = [sample.value for sample in samples if sample.name == name]
    return sum(values) if values else None


def _start_time(samples: Iterable[_Sample], names: tuple[str, ...]) -> float | None:
    """The latest start of all engines, so that a restart of any one of them moves it."""
    for name in names:
        values = [sample.value for sample in samples if sample.name == name]
        if values:
            return max(values)
    return None
