"""The /metrics page in vLLM's names, labels and help texts, look-alikes included."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from router_ext.demo.sim.engine import Engine

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
_TTFT_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
_LONG_TTFT_BOUNDS = (80.0, 160.0, 640.0, 2560.0)
_E2E_BOUNDS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0)
_LONG_E2E_BOUNDS = (960.0, 1920.0, 7680.0)

HELP = {
    "process_start_time_seconds": "Start time of the process since unix epoch in seconds.",
    "vllm:num_requests_running": "Number of requests in model execution batches.",
    "vllm:num_requests_waiting": "Number of requests waiting to be processed.",
    "vllm:num_requests_waiting_by_reason": "Number of waiting requests by reason. Reason labels: 'capacity' = waiting "
    "for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked "
    "status). Sum of all reasons equals vllm:num_requests_waiting.",
    "vllm:engine_sleep_state": "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "
    "awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
    "vllm:kv_cache_usage_perc": "KV-cache usage. 1 means 100 percent usage.",
    "vllm:prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "vllm:prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
    "vllm:num_preemptions": "Cumulative number of preemption from the engine.",
    "vllm:prompt_tokens": "Number of prefill tokens processed.",
    "vllm:prompt_tokens_by_source": "Number of prompt tokens by source.",
    "vllm:prompt_tokens_cached": "Number of cached prompt tokens (local + external).",
    "vllm:generation_tokens": "Number of generation tokens processed.",
    "vllm:request_success": "Count of successfully processed requests.",
    "vllm:admission_rejections": "Number of admission attempts rejected by a queue limit, by reason.",
    "vllm:time_to_first_token_seconds": "Histogram of time to first token in seconds.",
    "vllm:e2e_request_latency_seconds": "Histogram of e2e request latency in seconds.",
    "vllm:cache_config_info": "Information of the LLMEngine CacheConfig",
}


@dataclass(slots=True)
class Histogram:
    """Observations in cumulative buckets; ``counts`` has one more place than ``bounds``, for what is above them all."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value; a value equal to a bound belongs to that bound's bucket."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value


class MetricsPage:
    """Writes the page of one engine. ``started_at`` is wall-clock time in seconds and dates every ``_created`` line."""

    def __init__(self, model: str, engine: Engine, block_size: int, cache_blocks: int, started_at: float) -> None:
        self._base = f'engine="0",model_name="{model}"'
        self._model = model
        self._engine = engine
        self._cache = (
            f'block_size="{block_size}",enable_prefix_caching="True",engine="0",num_gpu_blocks="{cache_blocks}"'
        )
        self._started_at = started_at
        self.first_token_s = Histogram(_TTFT_BOUNDS + _LONG_TTFT_BOUNDS)
        self.whole_s = Histogram(_E2E_BOUNDS + _LONG_E2E_BOUNDS)

    def render(self) -> bytes:
        """The page as of now."""
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        engine, counters = self._engine, self._engine.counters
        computed = counters.prompt_tokens - counters.cached_tokens
        yield from _gauge("process_start_time_seconds", [("", self._started_at)])
        yield from self._plain_gauge("vllm:num_requests_running", engine.running)
        yield from self._plain_gauge("vllm:num_requests_waiting", engine.waiting)
        reasons = {"capacity": engine.waiting, "deferred": 0}
        yield from _gauge("vllm:num_requests_waiting_by_reason", self._labelled("reason", reasons))
        states = {"awake": 1, "weights_offloaded": 0, "discard_all": 0}
        yield from _gauge("vllm:engine_sleep_state", self._labelled("sleep_state", states))
        yield from self._plain_gauge("vllm:kv_cache_usage_perc", engine.kv_usage)
        yield from self._plain_counter("vllm:prefix_cache_queries", counters.prompt_tokens)
        yield from self._plain_counter("vllm:prefix_cache_hits", counters.cached_tokens)
        yield from self._plain_counter("vllm:num_preemptions", 0)
        yield from self._plain_counter("vllm:prompt_tokens", counters.prompt_tokens)
        sources = {"local_compute": computed, "local_cache_hit": counters.cached_tokens, "external_kv_transfer": 0}
        yield from self._counter("vllm:prompt_tokens_by_source", self._labelled("source", sources))
        yield from self._plain_counter("vllm:prompt_tokens_cached", counters.cached_tokens)
        yield from self._plain_counter("vllm:generation_tokens", counters.generation_tokens)
        yield from self._counter("vllm:request_success", self._finished())
        yield from self._counter("vllm:admission_rejections", self._rejections())
        yield from self._histogram("vllm:time_to_first_token_seconds", self.first_token_s)
        yield from self._histogram("vllm:e2e_request_latency_seconds", self.whole_s)
        yield from _gauge("vllm:cache_config_info", [(self._cache, 1)])

    def _labelled(self, label: str, values: dict[str, int]) -> list[tuple[str, float]]:
        return [(f'{self._base},{label}="{name}"', value) for name, value in values.items()]

    def _finished(self) -> list[tuple[str, float]]:
        finished = self._engine.counters.finished | {"repetition": 0}
        return [
            (f'engine="0",finished_reason="{reason}",model_name="{self._model}"', count)
            for reason, count in finished.items()
        ]

    def _rejections(self) -> list[tuple[str, float]]:
        reasons = {"max_num_queued_reqs": self._engine.counters.rejected, "max_num_queued_tokens": 0}
        return [(f'model_name="{self._model}",reason="{reason}"', count) for reason, count in reasons.items()]

    def _plain_gauge(self, name: str, value: float) -> Iterator[str]:
        return _gauge(name, [(self._base, value)])

    def _plain_counter(self, name: str, value: float) -> Iterator[str]:
        return self._counter(name, [(self._base, value)])

    def _counter(self, name: str, samples: list[tuple[str, float]]) -> Iterator[str]:
        yield from _family(f"{name}_total", "counter", HELP[name], samples)
        yield from self._created(name, [labels for labels, _ in samples])

    def _created(self, name: str, labels: list[str]) -> Iterator[str]:
        dated = [(label, self._started_at) for label in labels]
        return _family(f"{name}_created", "gauge", HELP[name], dated)

    def _histogram(self, name: str, histogram: Histogram) -> Iterator[str]:
        yield from _family(name, "histogram", HELP[name], [])
        count = 0
        for bound, observed in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
            count += observed
            yield f'{name}_bucket{{engine="0",le="{bound}",model_name="{self._model}"}} {float(count)}'
        yield f"{name}_count{{{self._base}}} {float(count)}"
        yield f"{name}_sum{{{self._base}}} {float(histogram.total)}"
        yield from self._created(name, [self._base])


def _gauge(name: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    return _family(name, "gauge", HELP[name], samples)


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{labels}}} {float(value)}" if labels else f"{name} {float(value)}"
