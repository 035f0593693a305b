"""The tools that only read."""

from typing import Final

from router_ext.admin.decision_models import ShownExplanation
from router_ext.admin.shapes import ab_tests, backends, config, costs, figures, rules, sessions, status
from router_ext.mcp import inputs
from router_ext.mcp.tool import Effect, Route, Tool

HEALTH: Final = Tool(
    "router_health",
    "Router health",
    "Whether the LLM router works and which of its backends (inference servers) are up. Start here when requests fail "
    "or are slow. Returns status (ok, no_backend, no_worker), version, uptime in seconds, and for each backend its "
    "health (healthy, degraded, down), whether its circuit breaker is open, whether it is drained, and requests in "
    "flight against the most that it takes.",
    Effect.READS,
    inputs.Nothing,
    status.HealthShown,
    Route("GET", "/health"),
)

BACKENDS: Final = Tool(
    "router_backends",
    "Backends",
    "Every backend with its settings and its state now: URL, models, capabilities, prices in US dollars per 1,000,000 "
    "tokens, limits, health, drained or not, pause in seconds, time to first token in milliseconds (median and 95th "
    "percentile, null without samples), and whether router.yaml (file) or the admin API (api) says it. Use it before "
    "changing, removing or draining a backend. Keys are never shown.",
    Effect.READS,
    inputs.Nothing,
    backends.Backends,
    Route("GET", "/api/backends"),
)

COSTS: Final = Tool(
    "router_costs",
    "Costs",
    "What calls to backends have cost in US dollars, today, this week (from Monday) or this month (from the first), by "
    "day, service, backend, model and kind of call, with token counts and sums. complete is false while other routers "
    "of the deployment cannot be asked. For where today is going use router_cost_forecast.",
    Effect.READS,
    inputs.Costs,
    costs.Costs,
    Route("GET", "/api/costs", ("period",)),
)

STATS: Final = Tool(
    "router_stats",
    "Statistics",
    "Counts since the router was started: requests, errors and tokens by backend, requests by rule, refusals by "
    "reason, hits of prefix pins (requests sent where their prompt is cached), sessions, dollars spent today by "
    "service, shadow calls and results of the quality gate. Use it to see how traffic is spread and what fails.",
    Effect.READS,
    inputs.Nothing,
    figures.Stats,
    Route("GET", "/api/stats"),
)

RULES: Final = Tool(
    "router_rules",
    "Routing rules",
    "The rules by which requests find their backends: conditions (empty means any), backends in order of preference, "
    "limits on price and time to first token. The matching rule with the highest priority decides; equal priorities "
    "keep this order. Use it before adding or removing a rule.",
    Effect.READS,
    inputs.Nothing,
    rules.Rules,
    Route("GET", "/api/rules"),
)

CONFIG: Final = Tool(
    "router_config",
    "Running configuration",
    "The configuration that is in force, whatever router.yaml on disk says by now: when it was taken over, why the "
    "last change of the file was refused (last_error, null when it was not), what the admin API has changed above the "
    "file, and every setting. Secrets are masked. Use it to find out whether a change of the file has arrived.",
    Effect.READS,
    inputs.Nothing,
    config.ConfigShown,
    Route("GET", "/api/config"),
)

SESSIONS: Final = Tool(
    "router_sessions",
    "Sessions",
    "Conversations that the router keeps, so that clients send only new messages; the most recently used first. "
    "Returns ids, sizes in tokens and bytes, turns, and times, but no message and no owner.",
    Effect.READS,
    inputs.Sessions,
    sessions.SessionList,
    Route("GET", "/api/sessions", ("limit",)),
)

COST_FORECAST: Final = Tool(
    "router_cost_forecast",
    "Cost forecast",
    "For each service: US dollars spent today, what today is likely to come to (with a low and a high estimate), the "
    "rate of the last hour in US dollars, its budget a day, and when that runs out (null when it does not today).",
    Effect.READS,
    inputs.Nothing,
    costs.Forecasts,
    Route("GET", "/api/costs/forecast"),
)

SHADOW_RESULTS: Final = Tool(
    "router_shadow_results",
    "A/B tests and shadows",
    "Every A/B test with the statistics of both variants (requests, errors, time to first token in milliseconds, cost "
    "in micro-dollars). A test with shadows sends copies of requests to a second backend and tells how alike the "
    "answers are; no answer is shown.",
    Effect.READS,
    inputs.Nothing,
    ab_tests.AbTests,
    Route("GET", "/api/ab-tests"),
)

BACKEND_QUEUE: Final = Tool(
    "router_backend_queue",
    "Queues of the backends",
    "How busy each backend is now: requests of this router in flight, running and waiting requests as its engine says "
    "(with the age of that reading in seconds, null where it does not say), the load that routing reckons with, bytes "
    "of prompts that wait to be read, and the expected wait in seconds (null until it is learned). Use it to explain "
    "slow first tokens, or before draining a backend.",
    Effect.READS,
    inputs.Nothing,
    figures.Queues,
    Route("GET", "/api/queue"),
)

EXPLAIN: Final = Tool(
    "router_explain",
    "Explain a request",
    "What the router would do with a request, without sending it or counting it: the rule, the chosen backend, every "
    "candidate with the filter that removed it or its scores (lower is better), the expected cache hit, or the refusal "
    "that the client would get, and whether a budget, an A/B test, the quality gate or a session would take part. Give "
    "the request's body and the headers that matter, like x-kronaxis-service. Absent fields are empty, 0 or false.",
    Effect.READS,
    inputs.Explain,
    ShownExplanation,
    Route("POST", "/api/explain"),
)

READING: Final = (
    HEALTH,
    BACKENDS,
    COSTS,
    STATS,
    RULES,
    CONFIG,
    SESSIONS,
    COST_FORECAST,
    SHADOW_RESULTS,
    BACKEND_QUEUE,
    EXPLAIN,
)
