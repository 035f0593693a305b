"""One routing question."""

from msgspec import Struct

from router_ext.model.affinity import Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import Snapshot


class Asked(Struct, frozen=True):
    """Everything that a decision depends on beside the configuration."""

    request: InferenceRequest
    snapshot: Snapshot
    affinity: Affinity
