"""The state of the backends at one instant, as routing sees it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from router_ext.model.backend import Backend


class Health(StrEnum):
    """What probes say of a backend. ``degraded`` still takes requests, after every healthy one; ``down`` takes none."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class BackendState(Struct, frozen=True):
    """One backend at one instant. ``in_flight`` (≥ 0) counts this router's own requests."""

    backend: Backend
    health: Health
    in_flight: int = 0

    @property
    def has_room(self) -> bool:
        """True while another request stays within ``max_concurrent``."""
        return self.in_flight < self.backend.max_concurrent


Snapshot = Mapping[str, BackendState]
"""Every configured backend by name. It does not change while a decision is made."""
