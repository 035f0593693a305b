"""Backends in the admin API: shown, added, removed, drained."""

from collections.abc import Callable

from fastapi import APIRouter, Request

from router_ext.admin.audit import Action
from router_ext.admin.operations import DryRun, Live, Operations, Source, errors, wish
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes.backends import BackendConfig, Backends, BackendShown, BackendSpec
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.views import backend_config, backend_view
from router_ext.config.changes import Changes
from router_ext.config.problem import ADMIN_API, Problem
from router_ext.control import Running
from router_ext.model.snapshot import BackendState

Answer = ChangeAnswer[BackendConfig]


def backend_routes(source: Source) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/backends", tags=["backends"])

    @router.get("", response_model=Backends)
    async def list_backends() -> Backends:
        """Every backend with its settings and its state, in the configuration's order."""
        return backends_shown(source().running, source().live)

    @router.post("", status_code=201, response_model=Answer, responses=errors(409, 503))
    async def add_backend(request: Request, spec: BackendSpec, dry_run: DryRun = False) -> Answer:
        """Adds a backend. Traffic reaches it once Envoy knows it and a probe has passed, within about two seconds."""
        return await _add(source(), request, spec, dry_run=dry_run)

    @router.delete("/{name}", response_model=Answer, responses=errors(404, 409, 503))
    async def remove_backend(request: Request, name: str, dry_run: DryRun = False) -> Answer:
        """Removes a backend, also one of the file. Requests in flight end there. Nothing may refer to it any more."""
        return await _edit(source(), request, Action.REMOVE_BACKEND, name, Changes.without_backend, dry_run=dry_run)

    @router.post("/{name}/drain", response_model=Answer, responses=errors(404, 503))
    async def drain_backend(request: Request, name: str, dry_run: DryRun = False) -> Answer:
        """Gives a backend no new requests. Those in flight end there."""
        return await _edit(source(), request, Action.DRAIN_BACKEND, name, Changes.with_drained, dry_run=dry_run)

    @router.post("/{name}/undrain", response_model=Answer, responses=errors(404, 503))
    async def undrain_backend(request: Request, name: str, dry_run: DryRun = False) -> Answer:
        """Gives a backend requests again."""
        return await _edit(source(), request, Action.UNDRAIN_BACKEND, name, Changes.without_drained, dry_run=dry_run)

    return router


def backends_shown(running: Running, live: Live) -> Backends:
    """Every backend as it is now."""
    states, now = live.snapshot(), live.clock.monotonic()
    configured = ((backend, states.get(backend.name)) for backend in running.loaded.config.backends)
    return Backends(
        backends=[_shown(backend_view(running, backend), state, now) for backend, state in configured if state]
    )


def _shown(config: BackendConfig, state: BackendState, now: float) -> BackendShown:
    return BackendShown(
        **config.model_dump(),
        health=state.health.value,
        circuit_open=state.tripped,
        paused_seconds=round(max(0.0, state.paused_until - now), 3),
        active_requests=state.in_flight,
        load_elsewhere=state.elsewhere,
        ttft_p50_ms=state.ttft.p50_ms if state.ttft.samples else None,
        ttft_p95_ms=state.ttft.p95_ms if state.ttft.samples else None,
    )


async def _add(operations: Operations, request: Request, spec: BackendSpec, *, dry_run: bool) -> Answer:
    name, desk = spec.name, operations.desk
    asked = wish(request, Action.ADD_BACKEND, name, dry_run=dry_run)
    objection = await operations.targets.objection(spec.url)
    if objection is not None:
        problem = Problem(f"{ADMIN_API}backends[{name}].url", 0, objection)
        message = "The router may not be pointed there: see problems. Nothing has changed."
        raise desk.refuse(asked, RefusedError(422, "forbidden_target", message, problems=[problem]))
    written = spec.model_dump(mode="json", exclude_unset=True)

    def edit(changes: Changes) -> Changes:
        if _exists(operations.running, changes, name):
            raise RefusedError(409, "backend_exists", "There is a backend of this name. Nothing has changed.")
        return changes.with_backend(name, written)

    return await desk.change(asked, edit, lambda running: backend_config(running, name))


async def _edit(
    operations: Operations,
    request: Request,
    action: Action,
    name: str,
    edit: Callable[[Changes, str], Changes],
    *,
    dry_run: bool,
) -> Answer:
    """A change of a backend that there must be."""

    def edit_known(changes: Changes) -> Changes:
        if not _exists(operations.running, changes, name):
            raise RefusedError(404, "backend_not_found", "There is no such backend.")
        return edit(changes, name)

    asked = wish(request, action, name, dry_run=dry_run)
    return await operations.desk.change(asked, edit_known, lambda running: backend_config(running, name))


def _exists(running: Running, changes: Changes, name: str) -> bool:
    """Whether there is a backend with these changes, which another process may have written since."""
    if name in changes.backends:
        return changes.backends[name] is not None
    return name in running.loaded.in_file.backends
