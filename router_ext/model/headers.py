"""Header names of the product, lower case as Envoy sends them. The generated reference lists them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the product: its wire name, who sends it and what it says."""

    name: str
    direction: str
    meaning: str


CLUSTER: Final = "x-kronaxis-cluster"
SERVICE: Final = "x-kronaxis-service"
CALL_TYPE: Final = "x-kronaxis-calltype"
PRIORITY: Final = "x-kronaxis-priority"
TIER: Final = "x-kronaxis-tier"
PERSONA_ID: Final = "x-kronaxis-personaid"
SESSION_CREATE: Final = "x-kronaxis-session-create"
SESSION_ID: Final = "x-kronaxis-session-id"
SESSION_END: Final = "x-kronaxis-session-end"
SESSION_TOKENS: Final = "x-kronaxis-session-tokens"
BACKEND: Final = "x-kronaxis-backend"
RULE: Final = "x-kronaxis-rule"
KV_PIN: Final = "x-kronaxis-kv-pin"
ATTEMPTS: Final = "x-kronaxis-attempts"
EGRESS_FLAGS: Final = "x-kronaxis-egress-flags"
RESPONSE_SCHEMA: Final = "x-kronaxis-response-schema"
BUDGET: Final = "x-kronaxis-budget"
QUALITY: Final = "x-kronaxis-quality"
SCHEMA_STATUS: Final = "x-kronaxis-schema"
AB_TEST: Final = "x-kronaxis-ab-test"
AB_VARIANT: Final = "x-kronaxis-ab-variant"
AB_FALLBACK: Final = "x-kronaxis-ab-fallback"

RELAY_CLUSTER: Final = "router-ext-relay"
"""Value of the routing header for a request whose answer the router brings itself. No backend's cluster is called so:
their names begin with ``backend-``."""

OF_A_BODY: Final = ("content-encoding", "etag", "last-modified", "digest", "content-digest", "repr-digest")
"""What an answer's headers say of its very bytes: wrong for any other body."""

SESSION_HEADERS: Final = (SESSION_CREATE, SESSION_ID, SESSION_END)
RESERVED_PREFIX: Final = "x-kronaxis-"
"""No header with this prefix travels from a client to a backend."""

CATALOG: Final = (
    Header(SERVICE, "request", "Name of the calling service; rules, budgets and the `service` label use it."),
    Header(CALL_TYPE, "request", "Kind of call (for example `summarize`); rules match on it."),
    Header(PRIORITY, "request", "Priority level (for example `interactive`); rules match on it."),
    Header(TIER, "request", "Tier of the caller, a whole number; rules match on it."),
    Header(PERSONA_ID, "request", "Stable id of the end user or agent behind the call."),
    Header(SESSION_CREATE, "request", "`true` keeps this conversation as a session."),
    Header(SESSION_ID, "request and response", "Continues a session."),
    Header(SESSION_END, "request", "`true` destroys the session after this request, if it is answered well."),
    Header(
        RESPONSE_SCHEMA,
        "request",
        "JSON Schema that the answer must fit: its JSON, or the base64 of that, at most 65,536 bytes of JSON. Wins over"
        " `response_format.json_schema.schema` of the body.",
    ),
    Header(SESSION_TOKENS, "response", "Tokens of the context that the backend was sent, as far as they are known."),
    Header(BACKEND, "response", "Name of the backend that answered."),
    Header(
        RULE,
        "response",
        "Name of the rule that chose it; `default` for the fallback chain, `budget` after a downgrade, `ab_test` for a"
        " variant of an A/B test.",
    ),
    Header(KV_PIN, "response", "`HIT` when the backend is expected to hold a prefix of the prompt, else `MISS`."),
    Header(ATTEMPTS, "response", "How many backends the request was sent to, where it was more than one."),
    Header(BUDGET, "response", "`downgraded` when the daily budget is spent and `downgrade_target` answered."),
    Header(
        QUALITY,
        "response",
        "What the quality gate says: `passed`; `fallback`, the fallback answered better; `failed`, no good answer was"
        " to be had; `skipped`, nobody looked.",
    ),
    Header(SCHEMA_STATUS, "response", "Why the schema of the request was not used, where it was not."),
    Header(AB_TEST, "response", "Name of the A/B test that the request took part in."),
    Header(AB_VARIANT, "response", "The caller's variant in it: `a` or `b`."),
    Header(AB_FALLBACK, "response", "`true` when the answer is not the variant's: its backend was away or failed."),
    Header(CLUSTER, "internal", "Envoy cluster to use. Set by router_ext only; removed when a client sends it."),
    Header(EGRESS_FLAGS, "internal", "Envoy's response flags, for the router only; removed before a client sees it."),
)


def read_flags(value: str) -> tuple[str, ...]:
    """Envoy's response flags out of ``EGRESS_FLAGS``: none for an empty value or for ``-``."""
    return () if value in ("", "-") else tuple(value.split(","))
