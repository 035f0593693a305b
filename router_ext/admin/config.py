"""The running configuration in the admin API."""

from contextlib import suppress

from fastapi import APIRouter, Request, Response

from router_ext.admin.audit import Action
from router_ext.admin.operations import DryRun, Operations, Source, errors, wish
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.shapes.config import ApiChanges, ConfigShown, ConfigVersion, LastError
from router_ext.admin.views import config_version, masked_specs, utc
from router_ext.config.masked import masked
from router_ext.config.problem import ConfigError
from router_ext.control import Refusal

Answer = ChangeAnswer[ConfigVersion]

REREAD_PATH = "/api/config/changes"
"""Where a worker is told that another one has written changes."""

REREAD_FILE_PATH = "/api/config/file"
"""Where a worker is told that another one has taken over the file."""


def config_routes(source: Source) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/config", tags=["config"])

    @router.get("", response_model=ConfigShown)
    async def show_config() -> ConfigShown:
        """What runs, whatever the file on disk says by now; and why that is not in force, if it is not."""
        return config_shown(source())

    @router.post("/reload", response_model=Answer, responses=errors(503))
    async def reload_config(request: Request, dry_run: DryRun = False) -> Answer:
        """Takes the file on disk over at once, with the changes of the API above it."""
        return await source().desk.reload(wish(request, Action.RELOAD_CONFIG, "", dry_run=dry_run), config_version)

    return router


def reread_routes(source: Source) -> APIRouter:
    """What a worker answers to its supervisor only."""
    router = APIRouter(tags=["config"])

    @router.post(REREAD_PATH, status_code=204, response_class=Response, response_model=None)
    async def reread_changes() -> Response:
        """Takes over the changes that another worker wrote."""
        await source().desk.control.reread_changes()
        return Response(status_code=204)

    @router.post(REREAD_FILE_PATH, status_code=204, response_class=Response, response_model=None)
    async def reread_file() -> Response:
        """Takes over the file; why it does not, if it does not, stands in ``Running.refused``. Nobody asked this worker
        for it, so the audit has it from the one that was.
        """
        with suppress(ConfigError, OSError, RuntimeError):
            await source().desk.control.reload()
        return Response(status_code=204)

    return router


def config_shown(operations: Operations) -> ConfigShown:
    """The configuration in force, without any secret."""
    running = operations.running
    return ConfigShown(
        digest=running.loaded.digest,
        loaded_at=utc(running.loaded_at),
        last_error=_last_error(running.refused, running.changes_refused),
        changes=ApiChanges(
            backends=masked_specs(running.changes.backends),
            rules=masked_specs(running.changes.rules),
            budgets=masked_specs(running.changes.budgets),
            drained=sorted(running.changes.drained),
        ),
        config=masked(running.loaded.config),
    )


def _last_error(*refusals: Refusal | None) -> LastError | None:
    """The newest of them."""
    known = [refusal for refusal in refusals if refusal is not None]
    newest = max(known, key=lambda refusal: refusal.at, default=None)
    return None if newest is None else LastError(message=newest.message, at=utc(newest.at))
