"""How a request's last attempt ended, from what Envoy and the router know of it."""

from router_ext.engine.attempts import AttemptEnd
from router_ext.engine.exchanges import OpenExchange
from router_ext.health.failures import CLIENT_LEFT, ROUTER_FAULT, failure_of, of_flags
from router_ext.model.outcome import AccessRecord, Carried, StreamEnd


def end_of(exchange: OpenExchange, record: AccessRecord) -> AttemptEnd:
    """How the last attempt of a request ended. What the router relayed it knows itself: Envoy's entry then tells of the
    answer that was replaced, and of the client.
    """
    attempt, relayed = exchange.attempt, exchange.relayed
    if relayed is None and exchange.relay_first:
        # Envoy did not wait for the router: what it sent instead says nothing of the backend, which nobody asked.
        relayed = AttemptEnd(0, ROUTER_FAULT)
    if relayed is None:
        ttft_s = attempt.streamed_ttft_s
        if ttft_s is None and not attempt.decision.request.stream:
            ttft_s = record.last_upstream_byte_s
        return AttemptEnd(record.status, failure_of(record), ttft_s, record.usage, _carried(exchange, record))
    # A relay that was not brought to its end was cut short by the client, or by a bug.
    cut_short = relayed.failure == ROUTER_FAULT and of_flags(record.flags) == CLIENT_LEFT
    failure = CLIENT_LEFT if cut_short else relayed.failure
    ttft_s = relayed.ttft_s if attempt.first_token_at is None else attempt.streamed_ttft_s
    return AttemptEnd(relayed.status, failure, ttft_s, relayed.usage, _carried(exchange, record))


def _carried(exchange: OpenExchange, record: AccessRecord) -> Carried:
    """What a request asks for is not known where nobody saw its body; Envoy knows streams by their answers."""
    streamed = exchange.attempt.decision.request.stream or record.stream_end is not StreamEnd.UNKNOWN
    return Carried(record.request_bytes, record.response_bytes, streamed)
