"""Short ways to say what is known of caches and queues when a request is decided."""

from collections.abc import Mapping

from router_ext.model.affinity import Affinity, Balancing
from router_ext.model.backend import Backend
from router_ext.model.decision import Choice
from router_ext.model.rule import Rule
from router_ext.model.snapshot import IDLE, BackendState, Health, Prefill, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from tests.fakes.domain import backend, request, snapshot

NOW = 1000.0
RATE = 1000.0
"""Size a second."""


def known(matched: Mapping[str, int] | None = None, size: int = 10_000, seed: int = 1) -> Affinity:
    """A prompt of which the named backends hold a part; 10 seconds of prefill for one that holds nothing."""
    return Affinity(size, matched or {}, seed, NOW)


def work(seconds: float, rate: float = RATE) -> Prefill:
    """A queue of one request that takes that long from now on."""
    return Prefill(rate, seconds * rate, 0.0, NOW + seconds)


def at_work(name: str, in_flight: int = 0, prefill: Prefill = IDLE, elsewhere: float = 0.0) -> BackendState:
    """A healthy backend with requests in flight."""
    return BackendState(backend(name, room=1000), Health.HEALTHY, in_flight, elsewhere, prefill)


def balanced(
    balancing: Balancing, *, rule: tuple[str, ...] = ("a", "b", "c"), chain: tuple[str, ...] = (), ratio: float = 2.0
) -> Pipeline:
    """Queue-aware routing with one rule ``r``."""
    rules = [Rule("r", backends=rule)]
    return Pipeline(rules, chain, queue_aware=True, balancing=balancing, max_queue_ratio=ratio)


def choice_of(pipeline: Pipeline, affinity: Affinity, *states: Backend | BackendState) -> Choice:
    """The choice for a plain request."""
    choice = pipeline.route(Asked(request(), snapshot(*states), affinity, NOW))
    assert isinstance(choice, Choice), choice
    return choice


def spread(pipeline: Pipeline, states: Snapshot, count: int = 300) -> dict[str, int]:
    """How often each backend is chosen when only the seed differs."""
    chosen = dict.fromkeys(states, 0)
    for seed in range(count):
        choice = pipeline.route(Asked(request(), states, known(seed=seed), NOW))
        assert isinstance(choice, Choice)
        chosen[choice.backend.name] += 1
    return chosen
