"""What a decision was made from, as messages of ``router_ext.v1`` and back: routing it again gives the same result."""

import math
from collections.abc import Mapping
from typing import Final

from router_ext.model.affinity import NO_AFFINITY, Affinity
from router_ext.model.asked import Asked
from router_ext.model.backend import Backend
from router_ext.model.decision import Seen
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.snapshot import IDLE, NO_SAMPLES, BackendState, Health, Prefill, TtftStats
from router_ext.routing.probes import PROBE_SHARE
from router_ext.v1 import decision_pb2 as pb

MOST: Final = 2**32 - 1
"""The largest number that a message's counts hold."""

_NOW: Final = 0.0
"""The instant of a decision that is made again."""

_HEALTHS: Final = {health.value: health for health in Health}


def count(number: float) -> int:
    """A count as a message holds it: from 0 to ``MOST``."""
    return int(min(max(0, number), MOST))


def message_of_seen(seen: Seen) -> pb.Seen:
    """Every backend's state, and what the caches were expected to hold. Times become relative to the decision."""
    message = pb.Seen(
        backends=[_state(state, seen.now) for state in seen.states],
        probes=seen.draw < PROBE_SHARE,
        tried=sorted(seen.tried),
    )
    if seen.affinity is not NO_AFFINITY:
        held = [pb.Held(backend=name, bytes=count(size)) for name, size in seen.affinity.matched.items()]
        message.caches.CopyFrom(
            pb.Caches(prompt_bytes=count(seen.affinity.size), held=held, seed=seen.affinity.seed & MOST)
        )
    return message


def _state(state: BackendState, now: float) -> pb.BackendState:
    message = pb.BackendState(
        backend=state.backend.name,
        health=state.health.value,
        circuit_open=state.tripped,
        in_flight=count(state.in_flight),
        elsewhere=state.elsewhere,
        paused_s=max(0.0, state.paused_until - now),
    )
    if state.prefill is not IDLE:
        prefill = state.prefill
        message.prefill.CopyFrom(pb.Prefill(rate=prefill.rate, queued=prefill.queued, behind=prefill.behind))
        if math.isfinite(prefill.free_at):
            message.prefill.free_in_s = prefill.free_at - now
    if state.ttft.samples:
        ttft = state.ttft
        message.ttft.CopyFrom(pb.Ttft(samples=ttft.samples, p95_ms=ttft.p95_ms, age_s=now - ttft.newest_at))
    return message


def request_of_message(facts: pb.RequestFacts) -> InferenceRequest:
    """What routing looks at of a request."""
    caller = Caller(facts.service, facts.call_type, facts.priority, facts.tier)
    return InferenceRequest(facts.path, caller, facts.model, facts.stream, facts.content_type, facts.body_bytes)


def asked_of_message(decision: pb.Decision, backends: Mapping[str, Backend]) -> Asked:
    """The question of a recorded decision over other ``backends``; those that it knows nothing of are healthy and idle.
    Raises ValueError for a record that holds words of another version.
    """
    seen = decision.seen
    known = {state.backend: state for state in seen.backends}
    snapshot = {
        name: _state_of_message(backend, known[name]) if name in known else BackendState(backend, Health.HEALTHY)
        for name, backend in backends.items()
    }
    affinity = NO_AFFINITY
    if seen.HasField("caches"):
        matched = {item.backend: item.bytes for item in seen.caches.held}
        affinity = Affinity(seen.caches.prompt_bytes, matched, seen.caches.seed, _NOW)
    draw = 0.0 if seen.probes else 1.0
    return Asked(request_of_message(decision.request), snapshot, affinity, _NOW, draw, frozenset(seen.tried))


def _state_of_message(backend: Backend, message: pb.BackendState) -> BackendState:
    health = _HEALTHS.get(message.health)
    if health is None:
        raise ValueError("a backend's health is none of healthy, degraded and down")
    prefill, ttft = IDLE, NO_SAMPLES
    if message.HasField("prefill"):
        told = message.prefill
        free_at = told.free_in_s if told.HasField("free_in_s") else -math.inf
        prefill = Prefill(told.rate, told.queued, told.behind, free_at)
    if message.HasField("ttft"):
        ttft = TtftStats(message.ttft.samples, -message.ttft.age_s, p95_ms=message.ttft.p95_ms)
    return BackendState(
        backend,
        health,
        message.in_flight,
        message.elsewhere,
        prefill,
        message.circuit_open,
        message.paused_s if message.paused_s > 0 else -math.inf,
        ttft,
    )
