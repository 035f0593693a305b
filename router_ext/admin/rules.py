"""Rules in the admin API."""

from fastapi import APIRouter, Request

from router_ext.admin.audit import Action
from router_ext.admin.operations import DryRun, Operations, Source, errors, wish
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.shapes.rules import RuleBody, Rules, RuleShown, RuleSpec
from router_ext.admin.views import rule_config, rule_view
from router_ext.config.changes import Changes
from router_ext.control import Running

Answer = ChangeAnswer[RuleShown]


def rule_routes(source: Source) -> APIRouter:
    """The routes. A name may hold slashes."""
    router = APIRouter(prefix="/api/rules", tags=["rules"])

    @router.get("", response_model=Rules)
    async def list_rules() -> Rules:
        """Every rule, in the configuration's order. The highest priority is tried first."""
        running = source().running
        return Rules(rules=[rule_view(running, rule) for rule in running.loaded.config.rules])

    @router.post("", status_code=201, response_model=Answer, responses=errors(409, 503))
    async def add_rule(request: Request, spec: RuleSpec, dry_run: DryRun = False) -> Answer:
        """Adds a rule, after those of the same priority."""
        return await _put(source(), request, Action.ADD_RULE, spec.name, spec, dry_run=dry_run)

    @router.put("/{name:path}", response_model=Answer, responses=errors(404, 503))
    async def replace_rule(request: Request, name: str, spec: RuleBody, dry_run: DryRun = False) -> Answer:
        """Replaces a rule, which keeps its place among those of the same priority."""
        return await _put(source(), request, Action.REPLACE_RULE, name, spec, dry_run=dry_run)

    @router.delete("/{name:path}", response_model=Answer, responses=errors(404, 503))
    async def remove_rule(request: Request, name: str, dry_run: DryRun = False) -> Answer:
        """Removes a rule, also one of the file."""
        return await _remove(source(), request, name, dry_run=dry_run)

    return router


async def _put(
    operations: Operations, request: Request, action: Action, name: str, spec: RuleBody, *, dry_run: bool
) -> Answer:
    written = spec.model_dump(mode="json", exclude_unset=True)

    def edit(changes: Changes) -> Changes:
        exists = _exists(operations.running, changes, name)
        if exists and action is Action.ADD_RULE:
            raise RefusedError(409, "rule_exists", "There is a rule of this name: replace it with PUT.")
        if not exists and action is Action.REPLACE_RULE:
            raise _not_found()
        return changes.with_rule(name, written)

    asked = wish(request, action, name, dry_run=dry_run)
    return await operations.desk.change(asked, edit, lambda running: rule_config(running, name))


async def _remove(operations: Operations, request: Request, name: str, *, dry_run: bool) -> Answer:
    def edit(changes: Changes) -> Changes:
        if not _exists(operations.running, changes, name):
            raise _not_found()
        return changes.without_rule(name)

    asked = wish(request, Action.REMOVE_RULE, name, dry_run=dry_run)
    return await operations.desk.change(asked, edit, lambda running: rule_config(running, name))


def _exists(running: Running, changes: Changes, name: str) -> bool:
    """As of a backend: see ``admin.backends``."""
    if name in changes.rules:
        return changes.rules[name] is not None
    return name in running.loaded.in_file.rules


def _not_found() -> RefusedError:
    return RefusedError(404, "rule_not_found", "There is no such rule.")
