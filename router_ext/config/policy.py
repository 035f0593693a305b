"""Fields of the sections that say what happens to a request: rules, defaults, budgets, gate and A/B tests."""

from typing import Final

from router_ext.config import names
from router_ext.config.backends import MAX_PRICE_1M
from router_ext.config.document import Mapping, Scalar
from router_ext.config.reading import Reading
from router_ext.config.scalars import INT_MAX, boolean, choice, duration, integer, local_path, member, number
from router_ext.config.section import Field, Items, Keyed, Section, Values, below
from router_ext.config.sections import (
    AbTest,
    Budget,
    Defaults,
    DpoExport,
    OnExhausted,
    QualityGate,
    RateLimit,
    Streaming,
    UsageMode,
)
from router_ext.model.gate import Checks
from router_ext.model.request import TEXT, VISION
from router_ext.model.rule import Match, Rule

REJECT: Final = "reject"
DOWNGRADE: Final = "downgrade"
SPLIT: Final = "split"
SHADOW: Final = "shadow"
_MAX_DOLLARS: Final = 1e9
_MAX_REQUESTS: Final = 1_000_000
_MAX_FILE_MB: Final = 1_000_000
_MAX_FILES: Final = 10_000
_MAX_SCHEMA_TIMEOUT_S: Final = 10.0
_MAX_ATTEMPTS: Final = 10
_MAX_FIRST_TOKEN_S: Final = 3600.0
_MAX_INFLIGHT: Final = 10_000

MATCH: Final = Section(
    Match,
    (
        Field("service", names.MATCHED, "Service of the caller; * stands for any characters."),
        Field("call_type", names.MATCHED, "Kind of call."),
        Field("tier", integer(0), "Tier of the caller; 0 matches all."),
        Field("model", names.MATCHED, "Model asked for; * stands for any characters."),
        Field("lora", names.MATCHED, "Adapter asked for."),
        Field("priority_level", names.MATCHED, "Priority of the call."),
        Field("content_type", choice((TEXT, VISION, "")), "text or vision."),
    ),
)

RULE: Final = Section(
    Rule,
    (
        Field("name", names.RULE, "Name in headers, logs and metrics."),
        Field("priority", integer(-INT_MAX), "The highest wins; equal ones keep the file's order."),
        Field("match", MATCH, "Conditions, all of which must hold."),
        Field("backends", Items(names.BACKEND_REF, min_items=1), "Backends in order of preference.", required=True),
        Field("max_cost_1m", number(0, MAX_PRICE_1M), "Highest price per 1,000,000 tokens; 0 means no limit."),
        Field("required_capabilities", Items(names.CAPABILITY, frozenset), "What a backend must be able to do."),
        Field("max_ttft_ms", integer(0), "Longest time to the first token in milliseconds; 0 means no limit."),
    ),
)

DEFAULTS: Final = Section(
    Defaults,
    (
        Field("fallback_chain", Items(names.BACKEND_REF), "Backends in order where no rule applies; all by default."),
        Field("max_attempts", integer(1, _MAX_ATTEMPTS), "Most backends that one request is sent to."),
        Field(
            "first_token_timeout",
            duration(_MAX_FIRST_TOKEN_S),
            "Longest silence of a stream before its first token; then another backend is asked.",
            "first_token_timeout_s",
        ),
    ),
)


def _downgrade_has_target(values: Values, mapping: Mapping, reading: Reading) -> None:
    if "action" not in values or "downgrade_target" not in values:
        return
    node = Scalar(below(mapping, "downgrade_target"), mapping.line, "")
    if values["action"] == DOWNGRADE and not values["downgrade_target"]:
        reading.problem(node, "is required by action: downgrade")
    if values["action"] != DOWNGRADE and values["downgrade_target"]:
        reading.problem(mapping.entries["downgrade_target"], "needs action: downgrade")


BUDGET: Final = Section(
    Budget,
    (
        Field("daily_limit_usd", number(0, _MAX_DOLLARS, above=True), "US dollars a day."),
        Field("action", choice((REJECT, DOWNGRADE)), "What happens above the limit."),
        Field("downgrade_target", names.OPTIONAL_BACKEND_REF, "Backend for requests above the limit."),
        Field("usage", member(UsageMode), "Token counts of the service's streams that do not ask for them."),
    ),
    relate=_downgrade_has_target,
)

BUDGETS: Final = Keyed(names.TITLE, "service", BUDGET)

RATE_LIMIT: Final = Section(
    RateLimit,
    (
        Field("requests_per_second", number(0, _MAX_REQUESTS, above=True), "Requests a second in the long run."),
        Field("burst_size", integer(1, _MAX_REQUESTS), "Requests that may come at once."),
    ),
)

RATE_LIMITS: Final = Keyed(names.TITLE, "service", RATE_LIMIT)

CHECKS: Final = Section(
    Checks,
    (
        Field("min_length", integer(0), "Fewest characters of an answer."),
        Field("min_tokens", integer(0), "Fewest tokens of an answer."),
        Field("valid_json", boolean(), "The answer must be JSON."),
        Field("no_refusal", boolean(), "The answer must not be a refusal."),
    ),
)

DPO_EXPORT: Final = Section(
    DpoExport,
    (
        Field("enabled", boolean(), "Write preference pairs."),
        Field("output_path", local_path(), "File for them, as JSON lines.", default=str(DpoExport().output_path)),
        Field("max_file_size_mb", integer(1, _MAX_FILE_MB), "Size at which the file is rotated, in 1,000,000 bytes."),
        Field("max_files", integer(1, _MAX_FILES), "Rotated files that are kept; of more the oldest is removed."),
        Field("redact", boolean(), "Mask e-mail addresses, phone and card numbers, keys and passwords."),
    ),
)


def _gate_has_fallback(values: Values, mapping: Mapping, reading: Reading) -> None:
    if values.get("enabled") is True and values.get("fallback_backend") == "":
        node = Scalar(below(mapping, "fallback_backend"), mapping.line, "")
        reading.problem(node, "is required by enabled: true")


QUALITY_GATE: Final = Section(
    QualityGate,
    (
        Field("enabled", boolean(), "Check answers and ask another backend when one fails."),
        Field("mode", choice(("sequential", "parallel")), "Ask the fallback after a failure, or at the same time."),
        Field("fallback_backend", names.OPTIONAL_BACKEND_REF, "Backend to ask."),
        Field("sample_rate", number(0, 1), "Share of the answers that are checked."),
        Field(
            "streaming", member(Streaming), "Hold a streamed answer until it is checked, check it in passing, or not."
        ),
        Field(
            "on_exhausted", member(OnExhausted), "What the client gets when no answer is good: the last one, or a 502."
        ),
        Field(
            "schema_timeout",
            duration(_MAX_SCHEMA_TIMEOUT_S),
            "Longest check of an answer against its schema.",
            "schema_timeout_s",
        ),
        Field("checks", CHECKS, "What makes an answer good."),
        Field("dpo_export", DPO_EXPORT, "Preference pairs for training."),
    ),
    relate=_gate_has_fallback,
)

AB_TEST: Final = Section(
    AbTest,
    (
        Field("name", names.AB_TEST, "Name in headers, logs and metrics."),
        Field("match", MATCH, "Requests that take part."),
        Field("variant_a", names.BACKEND_REF, "Backend of the control."),
        Field("variant_b", names.BACKEND_REF, "Backend under test."),
        Field("split_pct", number(0, 100), "Percentage of callers that get variant B, or of requests with a shadow."),
        Field("active", boolean(), "Whether the test runs."),
        Field("mode", choice((SPLIT, SHADOW)), "Split the traffic, or send copies to variant B."),
        Field("max_inflight", integer(1, _MAX_INFLIGHT), "Shadows under way at a time; others are dropped."),
        Field("similarity_threshold", number(0, 1), "Similarity from which two answers count as alike."),
    ),
)
