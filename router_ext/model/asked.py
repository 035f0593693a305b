"""One routing question."""

from msgspec import Struct

from router_ext.model.affinity import NO_AFFINITY, Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import Snapshot


class Asked(Struct, frozen=True):
    """Everything that a decision depends on beside the configuration.

    ``affinity`` is ``NO_AFFINITY``, that very object, where nothing is pinned or predicted. ``now`` is in monotonic
    seconds. ``draw`` (0 ≤ x < 1) is a number drawn for this request: it decides whether the request tries out a slow
    backend; 1 means never. ``tried`` names the backends that have already failed it.
    """

    request: InferenceRequest
    snapshot: Snapshot
    affinity: Affinity = NO_AFFINITY
    now: float = 0.0
    draw: float = 1.0
    tried: frozenset[str] = frozenset()
