"""What one routing decision costs, by policy and number of backends. The last line is a JSON object of microseconds.

The prompt is already looked up: the time of keys and table is ``benchmarks.prefix``'s.
"""

import json
from collections.abc import Callable
from timeit import repeat
from typing import Final

from router_ext.model.affinity import Affinity, Balancing
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.decision import Choice
from router_ext.model.request import Api, Caller, InferenceRequest
from router_ext.model.rule import Match, Rule
from router_ext.model.snapshot import BackendState, Health, Prefill, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from router_ext.routing.scorers import NO_AFFINITY

SIZES: Final = (2, 8, 64)
ROUNDS: Final = 5
CALLS: Final = 2000

_REQUEST: Final = InferenceRequest(Api.CHAT, Caller("shop", "chat"), "m", stream=True)


def snapshot(count: int) -> Snapshot:
    """Backends with work, each in another state."""
    states = {}
    for i in range(count):
        name = f"node-{i}"
        backend = Backend(name, Endpoint("http", name, 80), BackendType.VLLM, "m", aliases=frozenset({"fast"}))
        prefill = Prefill(80_000.0 + i, 40_000.0 * (i % 5), 20_000.0 * (i % 5), 100.0 + i % 7)
        states[name] = BackendState(backend, Health.HEALTHY, i % 9, float(i % 3), prefill)
    return states


def affinity(count: int) -> Affinity:
    """A long prompt, of which six backends hold a part."""
    return Affinity(400_000, {f"node-{i}": 40_000 * (i + 1) for i in range(min(6, count))}, 12345, 101.0)


def microseconds(call: Callable[[], object]) -> float:
    """The best of several rounds, for one call."""
    return min(repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def measure(count: int) -> dict[str, float]:
    """Every policy over ``count`` backends."""
    states, known = snapshot(count), affinity(count)
    names = tuple(states)
    rules = [Rule("other", 9, Match(service="bank")), Rule("all", 1, Match(model="m"), names, max_cost_1m=9.0)]

    def one(pipeline: Pipeline, given: Affinity = NO_AFFINITY) -> float:
        if not isinstance(pipeline.route(Asked(_REQUEST, states, given, 101.0)), Choice):
            raise RuntimeError("refused")
        return round(microseconds(lambda: pipeline.route(Asked(_REQUEST, states, given, 101.0))), 1)

    return {
        "order": one(Pipeline(rules, names)),
        "queue_aware": one(Pipeline(rules, names, queue_aware=True)),
        "pin": one(Pipeline(rules, names, queue_aware=True), known),
        "predicted_ttft": one(Pipeline(rules, names, balancing=Balancing.PREDICTED_TTFT), known),
    }


def main() -> None:
    """Measures and prints."""
    result = {}
    for count in SIZES:
        for policy, cost in measure(count).items():
            print(f"{count:>3} backends, {policy:<15} {cost:7.1f} us")
            result[f"{policy}_{count}"] = cost
    print(json.dumps(result))


if __name__ == "__main__":
    main()
