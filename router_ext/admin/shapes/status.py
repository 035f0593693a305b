"""Health and readiness."""

from pydantic import Field

from router_ext.admin.shapes.backends import HealthWord
from router_ext.admin.shapes.base import Shown


class BackendHealth(Shown):
    """One backend in short."""

    name: str
    type: str
    url: str
    model: str
    health: HealthWord
    circuit_open: bool
    drained: bool = Field(description="True: it gets no new requests.")
    active_requests: int
    max_concurrent: int


class WorkerShown(Shown):
    """One of several processes."""

    worker: int
    pid: int | None
    ready: bool
    restarts: int


class HealthShown(Shown):
    """State of the router and of its backends."""

    status: str = Field(
        description="ok; no_backend while every backend is down or drained; no_worker while no process answers."
    )
    version: str
    uptime_seconds: float
    workers: list[WorkerShown] = Field(default=[], description="Absent where the router is one process.")
    backends: list[BackendHealth]


class ReadyShown(Shown):
    """Whether requests can be routed."""

    ready: bool
