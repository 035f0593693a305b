"""Decisions as messages of the project's own contract, ``router_ext.v1.Decision``."""

from router_ext.model.decision import Candidate, Decision
from router_ext.v1 import decision_pb2 as pb


def message_of_decision(decision: Decision) -> pb.Decision:
    """The whole record: facts of the request, every candidate with its scores or the filter that removed it."""
    request, caller = decision.request, decision.request.caller
    message = pb.Decision(
        id=decision.id,
        rule=decision.rule,
        backend=decision.backend,
        upstream_model=decision.upstream_model,
        rejection=decision.rejection,
        attempt=decision.attempt,
        candidates=[_candidate(candidate) for candidate in decision.candidates],
        request=pb.RequestFacts(
            path=request.path,
            service=caller.service,
            call_type=caller.call_type,
            priority=caller.priority_level,
            tier=caller.tier,
            model=request.model,
            content_type=request.content_type,
            stream=request.stream,
            body_bytes=request.body_bytes,
        ),
    )
    message.time.FromMicroseconds(round(decision.time_s * 1e6))
    return message


def _candidate(candidate: Candidate) -> pb.Candidate:
    scores = [pb.Score(scorer=name, value=value) for name, value in candidate.scores]
    return pb.Candidate(
        backend=candidate.backend, filtered_by=candidate.filtered_by, reason=candidate.reason, scores=scores
    )
