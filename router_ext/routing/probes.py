"""A trickle of requests for backends that are too slow for a rule, so that one that became fast is seen to be."""

from typing import Final

from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked
from router_ext.routing.ranking import TTFT_SLA, Sifted

PROBE_SHARE: Final = 0.01
"""The share of requests that try out a backend which only the limit on the time to the first token removed."""


def to_probe(sifted: Sifted, asked: Asked) -> BackendState | None:
    """The backend that this request tries out: among the slow ones the one not heard of for longest, the first among
    equals. None for most requests, and where none is slow.
    """
    if asked.draw >= PROBE_SHARE:
        return None
    slow = [asked.snapshot[name] for name in sifted.names_dropped_by(TTFT_SLA)]
    return min(slow, key=lambda state: state.ttft.newest_at, default=None)
