"""How a routed request is changed on its way: headers, path, credentials, body."""

from collections.abc import Iterable, Mapping
from typing import Final

from router_ext.engine.attempts import Attempt
from router_ext.engine.credentials import credential_edits
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.sessions import edits_of
from router_ext.model import headers
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.payload.inference import InferenceBody
from router_ext.ports import Call
from router_ext.stream.effects import Forward, HeaderEdits, RelayHead
from router_ext.stream.events import RequestHead

MAX_WAIT_S: Final = 3600.0
"""Envoy's ``max_message_timeout``: it ignores a request to wait for longer."""

UPSTREAM_TIMEOUT: Final = "x-envoy-upstream-rq-timeout-ms"
"""Envoy's whole-request timeout for one request, in milliseconds."""


def forward_inference(
    head: RequestHead,
    body: InferenceBody | None,
    exchange: OpenExchange,
    timeout_s: float,
    *,
    pin: bool | None = None,
    failover: bool = False,
) -> Forward:
    """The changes for an inference request. ``body`` is None when the mode did not show it; ``pin`` says whether the
    backend's cache is expected to help, None while nothing is pinned. ``failover``: a failing answer is shown first.
    """
    decision, backend = exchange.attempt.decision, exchange.attempt.slot.state.backend
    changed = body.for_model(decision.upstream_model) if body is not None else None
    edits = _edits(head, backend)
    set_headers, removed = [*edits.set], [*edits.remove]
    if not decision.request.stream:
        set_headers.append((UPSTREAM_TIMEOUT, str(int(timeout_s * 1000))))
    keys, others = credential_edits(backend)
    set_headers += keys
    removed += (name for name in others if name in head.headers)
    if changed is not None and body is not None and body.compressed:
        removed.append("content-encoding")
    return Forward(
        edits=HeaderEdits(tuple(set_headers), tuple(removed)),
        body=changed,
        metadata=_metadata(decision),
        response_edits=HeaderEdits((*_response_edits(decision, pin).set, *_told_of(exchange))),
        streaming=decision.request.stream,
        failover=failover,
        wait_s=_wait_s(timeout_s),
    )


def await_relay(decision: Decision, timeout_s: float) -> Forward:
    """Lets no upstream see the request: the router brings the answer."""
    edits = HeaderEdits(((headers.CLUSTER, headers.RELAY_CLUSTER),))
    return Forward(edits=edits, metadata=_metadata(decision), relay=True, wait_s=_wait_s(timeout_s))


def _wait_s(timeout_s: float) -> float:
    """Longer than the router takes at most, and no longer than Envoy can be asked to wait."""
    return min(timeout_s + 5.0, MAX_WAIT_S)


def call_of(head: RequestHead, body: InferenceBody, attempt: Attempt, *, asks_usage: bool = False) -> Call:
    """The router's own request for one attempt, as the backend would have got it from Envoy. ``asks_usage``: its stream
    is to report its token counts.
    """
    decision, backend = attempt.decision, attempt.slot.state.backend
    keys, others = credential_edits(backend)
    left_out = {*others, *(name for name, _ in keys), *_OF_THE_FIRST_REQUEST}
    kept = ((n, v) for n, v in head.headers.items() if n not in left_out and not n.startswith(headers.RESERVED_PREFIX))
    changed = body.for_model(decision.upstream_model, asks_usage=asks_usage)
    return Call(
        backend=backend,
        target=backend.upstream_path(head.target),
        headers=(*kept, *keys),
        body=body.envelope.raw if changed is None else changed,
        request_id=f"{decision.id}.{decision.attempt}",
    )


def relay_head(status: int, upstream: Iterable[tuple[str, str]], exchange: OpenExchange) -> RelayHead:
    """The head of an answer that the router brings: the backend's own headers beside those of the product."""
    attempt = exchange.attempt
    pin = None if attempt.expected is None else attempt.expected.matched > 0
    told = _response_edits(attempt.decision, pin).set
    if exchange.turn is not None and 200 <= status < 300:
        told = (*told, *edits_of(exchange.turn).set)
    if exchange.attempts > 1:
        told = (*told, (headers.ATTEMPTS, str(exchange.attempts)))
    told = (*told, *_told_of(exchange))
    given = [(name, value) for name, value in upstream if not name.startswith(headers.RESERVED_PREFIX)]
    names = {name for name, _ in given}
    stale = tuple(name for name in _OF_THE_FIRST_ANSWER if name not in names)
    metadata = {**_metadata(attempt.decision), "attempts": str(exchange.attempts)}
    return RelayHead(status, HeaderEdits((*given, *told), stale), metadata)


def quality_headers(exchange: OpenExchange) -> tuple[tuple[str, str], ...]:
    """What a client is told of the quality gate; nothing where it had nothing to say."""
    told = () if exchange.quality is None else ((headers.QUALITY, exchange.quality.value),)
    return (*told, (headers.SCHEMA_STATUS, "invalid")) if exchange.bad_schema else told


def experiment_headers(exchange: OpenExchange) -> tuple[tuple[str, str], ...]:
    """What a client is told of the A/B test that it takes part in; nothing where it takes part in none."""
    assignment = exchange.assignment
    if assignment is None:
        return ()
    told = ((headers.AB_TEST, assignment.test), (headers.AB_VARIANT, assignment.variant))
    if assignment.is_served_by(exchange.attempt.decision.backend):
        return told
    return (*told, (headers.AB_FALLBACK, "true"))


def _told_of(exchange: OpenExchange) -> tuple[tuple[str, str], ...]:
    return (*quality_headers(exchange), *experiment_headers(exchange))


_OF_THE_FIRST_REQUEST: Final = ("accept-encoding", "content-encoding", "content-length", "x-request-id")
"""What a call says for itself: its body is not compressed, and its id names the attempt."""

_OF_THE_FIRST_ANSWER: Final = (
    *headers.OF_A_BODY,
    *("content-type", "content-length", "content-language", "retry-after"),
    *("www-authenticate", "set-cookie", "x-should-retry", "x-request-id", headers.EGRESS_FLAGS),
    *(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")),
)
"""What the answer that is replaced may have said of itself."""


def forward_other(head: RequestHead, decision: Decision, backend: Backend) -> Forward:
    """The changes for a request that is no inference: the caller's own credentials stay, the backend's key is not
    lent to paths that routing knows nothing about.
    """
    return Forward(edits=_edits(head, backend), metadata=_metadata(decision), watch=False)


def _edits(head: RequestHead, backend: Backend) -> HeaderEdits:
    set_headers = [(headers.CLUSTER, backend.cluster)]
    target = backend.upstream_path(head.target)
    if target != head.target:
        set_headers.append((":path", target))
    # Usage is read from the answer by Envoy itself, which does not decompress.
    removed = [name for name in head.headers if name.startswith(headers.RESERVED_PREFIX) or name == "accept-encoding"]
    return HeaderEdits(tuple(set_headers), tuple(removed))


def _response_edits(decision: Decision, pin: bool | None) -> HeaderEdits:
    told: tuple[tuple[str, str], ...] = ((headers.BACKEND, decision.backend), (headers.RULE, decision.rule))
    if decision.downgraded:
        told = (*told, (headers.BUDGET, "downgraded"))
    return HeaderEdits(told if pin is None else (*told, (headers.KV_PIN, "HIT" if pin else "MISS")))


def _metadata(decision: Decision) -> Mapping[str, str]:
    """The short form of a decision that goes into Envoy's dynamic metadata and the access log."""
    return {
        "id": decision.id,
        "rule": decision.rule,
        "backend": decision.backend,
        "service": decision.request.caller.service,
    }
