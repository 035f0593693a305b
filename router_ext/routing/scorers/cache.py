"""Preferences that follow the backends' prefix caches."""

from collections.abc import Mapping, Sequence
from typing import Final

from router_ext.model.affinity import Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState

FEW: Final = 4.0
"""Requests in a backend that are no overload, however idle the others are."""

PATIENCE: Final = 1.5
"""How much queued prefill a pin outweighs, as a multiple of what it saves now: the conversation comes back."""

TIE: Final = 0.05
"""Predicted times this much above the least, as a share of it, count as equal."""

TIE_S: Final = 0.005
"""Seconds above the least that count as equal: nobody notices them, and predictions are not that exact."""


def usable(state: BackendState, matched: Mapping[str, int]) -> int:
    """The size of the prefix that a backend holds, 0 when its engine has no prefix cache of its own."""
    size = matched.get(state.backend.name, 0)
    return size if size and state.backend.traits.caches_prefixes else 0


class Pinned:
    """Backends that hold a prefix of the prompt, the longest first, unless they are overloaded.

    A backend is overloaded in either of two cases: it has more requests than ``FEW`` and than ``max_queue_ratio`` (≥ 1)
    times the candidates' mean; or, where its prefill rate is learned, more prefill work is queued there than half the
    candidates' mean, which a less busy one would have, and ``PATIENCE`` times what the prefix saves. Without the second
    test requests pile up on the backends with the long prefixes, and the mean grows with the pile.
    """

    name = "pin"

    def __init__(self, max_queue_ratio: float) -> None:
        self._max_queue_ratio = max_queue_ratio

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """The size of the prefix, negative; 0 for every backend that is not preferred."""
        matched = affinity.matched
        if not matched:
            return [0] * len(candidates)
        count = len(candidates)
        most = max(FEW, self._max_queue_ratio * sum([s.in_flight + s.elsewhere for s in candidates]) / count)
        queued = sum([state.prefill.queued for state in candidates]) / count
        return [
            -size if (size := usable(state, matched)) and _is_worth(state, size, most, queued) else 0
            for state in candidates
        ]


def _is_worth(state: BackendState, size: int, most: float, mean_queued: float) -> bool:
    prefill = state.prefill
    return state.load <= most and (not prefill.rate or prefill.queued <= mean_queued / 2 + PATIENCE * size)


class PredictedTtft:
    """The shortest time to the first token: the backend's queue, then the part of the prompt that it does not hold.

    Backends whose rate is not learned yet are taken to be as fast as the others on average; while none is known, the
    load stands for the time. Times that are nearly the least count as equal, so that small errors of the rates do not
    send everything to one backend.
    """

    name = "predicted_ttft"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """Seconds, or requests while no rate is known."""
        rates = [state.prefill.rate for state in candidates if state.prefill.rate]
        if not rates:
            return [state.load for state in candidates]
        times = predicted_ttft_s(candidates, affinity, sum(rates) / len(rates))
        least = min(times)
        tie = least + max(TIE_S, TIE * least)
        return [time if time > tie else least for time in times]


class Uncached:
    """The least new text to prefill: among equal times, the backend that has to compute least."""

    name = "uncached"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """Size in the unit of ``Prompt.size``."""
        size, matched = affinity.size, affinity.matched
        return [size - usable(state, matched) for state in candidates] if matched else [size] * len(candidates)


def predicted_ttft_s(candidates: Sequence[BackendState], affinity: Affinity, rate: float) -> list[float]:
    """Seconds to the first token by candidate; ``rate`` (> 0) stands in where none is learned."""
    size, matched, now = affinity.size, affinity.matched, affinity.now
    return [
        (prefill := state.prefill).wait_s(now, known := prefill.rate or rate) + (size - usable(state, matched)) / known
        for state in candidates
    ]
