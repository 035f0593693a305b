"""What becomes of requests, as messages of the service ``Decisions``: of live ones, and of those only explained."""

from router_ext.decisions.record import message_of_decision
from router_ext.decisions.state import count
from router_ext.engine.explaining import Explanation
from router_ext.engine.gate import GateChance
from router_ext.engine.watching import Happening, Settlement
from router_ext.model.outcome import Usage
from router_ext.model.rejection import Rejection
from router_ext.v1 import decisions_pb2 as pb


def message_of_happening(happening: Happening, dropped: int) -> pb.WatchEvent:
    """One event of the stream. ``dropped`` events before it did not reach the watcher."""
    event = pb.WatchEvent(decision=message_of_decision(happening.decision), dropped=count(dropped))
    if happening.settlement is not None:
        event.settlement.CopyFrom(_settlement(happening.settlement))
    if happening.rejection is not None:
        event.refusal.CopyFrom(_refusal(happening.rejection))
    return event


def message_of_explanation(explanation: Explanation) -> pb.ExplainResponse:
    """The whole answer; what would not happen is absent."""
    message = pb.ExplainResponse(cluster=explanation.cluster, budget=explanation.budget)
    if explanation.decision is not None:
        message.decision.CopyFrom(message_of_decision(explanation.decision))
    if explanation.rejection is not None:
        message.refusal.CopyFrom(_refusal(explanation.rejection))
    if explanation.assignment is not None:
        told = explanation.assignment
        message.ab_test.CopyFrom(
            pb.AbTest(test=told.test, variant=told.variant, fell_back=told.fell_back, by_chance=explanation.by_chance)
        )
    if explanation.gate is not None:
        message.gate.CopyFrom(_gate(explanation.gate))
    if explanation.shadow is not None:
        test, share = explanation.shadow.test, explanation.shadow.probability
        message.shadow.CopyFrom(pb.Shadow(test=test.name, backend=test.variant_b, probability=share))
    if explanation.session is not None:
        part = explanation.session
        message.session.CopyFrom(pb.Session(action=part.action, tokens=count(part.tokens)))
    return message


def _refusal(rejection: Rejection) -> pb.Refusal:
    return pb.Refusal(
        status=rejection.status,
        code=rejection.reason.value,
        message=rejection.message,
        retry_after_s=count(rejection.retry_after_s or 0),
    )


def _gate(chance: GateChance) -> pb.Gate:
    ask = chance.ask
    return pb.Gate(
        probability=chance.probability,
        fallback=ask.fallback,
        observes=ask.observes,
        schema=ask.schema is not None,
    )


def _settlement(settlement: Settlement) -> pb.Settlement:
    last, outcome = settlement.last, settlement.outcome
    message = pb.Settlement(
        backend=last.backend,
        rule=last.rule,
        attempts=outcome.attempts,
        also_asked=settlement.also_asked,
        status=outcome.record.status,
        failure=outcome.failure or "",
        duration_ms=round(outcome.record.duration_s * 1000, 1),
        cost_micro_usd=count(settlement.cost_micro_usd),
        pin="" if last.matched is None else "hit" if last.matched else "miss",
    )
    if outcome.ttft_s is not None:
        message.ttft_ms = round(outcome.ttft_s * 1000, 1)
    if outcome.usage is not None:
        message.usage.CopyFrom(_usage(outcome.usage, estimated=outcome.estimated))
    return message


def _usage(usage: Usage, *, estimated: bool) -> pb.Usage:
    message = pb.Usage(
        prompt_tokens=count(usage.prompt_tokens),
        completion_tokens=count(usage.completion_tokens),
        estimated=estimated,
    )
    if usage.cached_tokens is not None:
        message.cached_tokens = count(usage.cached_tokens)
    return message
