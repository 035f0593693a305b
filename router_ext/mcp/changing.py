"""The tools that change the router. Each can be tried with ``dry_run``."""

from typing import Final

from router_ext.admin.shapes.backends import BackendConfig
from router_ext.admin.shapes.budgets import BudgetConfig
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.shapes.config import ConfigVersion
from router_ext.admin.shapes.rules import RuleShown
from router_ext.admin.shapes.sessions import SessionCreated
from router_ext.mcp import inputs
from router_ext.mcp.tool import Effect, Route, Switch, Tool

_DRY_RUN: Final = ("dry_run",)
_TRY: Final = (
    " Call it with dry_run true first and show what would change. Returns changed, before, after and warnings. "
    "A change that is not valid changes nothing."
)

RELOAD: Final = Tool(
    "router_reload",
    "Reload the configuration",
    "Takes over router.yaml as it is on the router's disk now, with the changes of the admin API above it. The router "
    "also does so by itself within seconds of a change; use it to learn at once why a file is refused." + _TRY,
    Effect.CHANGES,
    inputs.Rehearsal,
    ChangeAnswer[ConfigVersion],
    Route("POST", "/api/config/reload", _DRY_RUN),
)

ADD_BACKEND: Final = Tool(
    "router_add_backend",
    "Add a backend",
    "Adds an inference server. Users' prompts will be sent to its URL, so add only what the operator named. Traffic "
    "reaches it once a probe has passed, within about two seconds, if a rule or the fallback chain leads there. A key "
    "is given as env:NAME of a variable of the router, never as itself. Private addresses may be forbidden; link-local "
    "and metadata addresses always are. Kept over reloads and restarts." + _TRY,
    Effect.CHANGES,
    inputs.AddBackend,
    ChangeAnswer[BackendConfig],
    Route("POST", "/api/backends", _DRY_RUN),
    see="router_backends",
    open_world=True,
)

REMOVE_BACKEND: Final = Tool(
    "router_remove_backend",
    "Remove a backend",
    "Takes a backend out of the configuration, also one of router.yaml. Requests in flight end there. Refused while "
    "a rule, the fallback chain or another setting still names it: the problems say which. To take it out of traffic "
    "for a while use router_drain_backend." + _TRY,
    Effect.CHANGES,
    inputs.RemoveBackend,
    ChangeAnswer[BackendConfig],
    Route("DELETE", "/api/backends/{name}", _DRY_RUN),
    see="router_backends",
)

DRAIN_BACKEND: Final = Tool(
    "router_drain_backend",
    "Drain a backend",
    "With drain true (the default) a backend gets no new requests, and those in flight end there: for maintenance, or "
    "when it answers badly. With drain false it gets requests again. Look at router_backend_queue afterwards: it is "
    "empty when in_flight is 0." + _TRY,
    Effect.CHANGES,
    inputs.DrainBackend,
    ChangeAnswer[BackendConfig],
    Switch(
        "drain",
        Route("POST", "/api/backends/{name}/drain", _DRY_RUN),
        Route("POST", "/api/backends/{name}/undrain", _DRY_RUN),
    ),
    see="router_backends",
)

ADD_RULE: Final = Tool(
    "router_add_rule",
    "Add a routing rule",
    "Adds a rule: requests that fit all conditions of match go to its backends, in order of preference, unless a rule "
    "with a higher priority fits too. Prices are US dollars per 1,000,000 tokens, times to first token milliseconds; 0 "
    "means no limit. It takes over live traffic at once; router_explain shows what it does with a request." + _TRY,
    Effect.CHANGES,
    inputs.AddRule,
    ChangeAnswer[RuleShown],
    Route("POST", "/api/rules", _DRY_RUN),
    see="router_rules",
)

REMOVE_RULE: Final = Tool(
    "router_remove_rule",
    "Remove a routing rule",
    "Removes a rule, also one of router.yaml. Its requests go by the next rule that fits, or by the fallback chain."
    + _TRY,
    Effect.CHANGES,
    inputs.RemoveRule,
    ChangeAnswer[RuleShown],
    Route("DELETE", "/api/rules/{name}", _DRY_RUN),
    see="router_rules",
)

UPDATE_BUDGET: Final = Tool(
    "router_update_budget",
    "Set a budget",
    "Gives a service a budget in US dollars a day, in the place of the one it has; what it spent today stays spent. "
    "action says what becomes of its requests once it is used up: reject, or downgrade to the "
    "backend downgrade_target. A limit below what is spent takes effect at once. router_cost_forecast shows spending."
    + _TRY,
    Effect.CHANGES,
    inputs.UpdateBudget,
    ChangeAnswer[BudgetConfig],
    Route("PUT", "/api/budgets/{service}", _DRY_RUN),
    see="router_cost_forecast",
)

CREATE_SESSION: Final = Tool(
    "router_create_session",
    "Create a session",
    "Keeps a conversation in the router, so that its client goes on with it by sending only new messages and the id as "
    "x-kronaxis-session-id. Give messages as in a chat request, oldest first. The session belongs to callers with the "
    "same service and credential; leave credential out for callers that send none. A credential given here passes "
    "through this conversation: ask before. Returns the id, and the size in estimated tokens and bytes; with dry_run "
    "true nothing is kept and id is null.",
    Effect.ADDS,
    inputs.CreateSession,
    SessionCreated,
    Route("POST", "/api/sessions", _DRY_RUN),
)

CHANGING: Final = (
    RELOAD,
    ADD_BACKEND,
    REMOVE_BACKEND,
    DRAIN_BACKEND,
    ADD_RULE,
    REMOVE_RULE,
    UPDATE_BUDGET,
    CREATE_SESSION,
)
