"""The routes of the engine and of its configuration, which every application of the API has."""

from collections.abc import Callable

from fastapi import APIRouter

from router_ext.admin.backends import backend_routes
from router_ext.admin.budgets import budget_change_routes
from router_ext.admin.config import config_routes
from router_ext.admin.new_session import SessionDesk
from router_ext.admin.operations import Source
from router_ext.admin.queue import queue_routes
from router_ext.admin.rules import rule_routes
from router_ext.admin.sessions import session_routes


def changing_routes(source: Source, sessions: Callable[[], SessionDesk]) -> tuple[APIRouter, ...]:
    """What one process that routes answers, for itself or for a supervisor that has ``operations.elsewhere``."""
    return (
        backend_routes(source),
        rule_routes(source),
        budget_change_routes(source),
        config_routes(source),
        queue_routes(source),
        session_routes(sessions),
    )
