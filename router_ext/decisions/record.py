"""Decisions as messages of the project's own contract, ``router_ext.v1.Decision``."""

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from router_ext.decisions.state import count, message_of_seen
from router_ext.model.decision import Candidate, Decision
from router_ext.v1 import decision_pb2 as pb

Json = dict[str, Any]


def json_of_message(message: Message) -> Json:
    """A message of the contract in JSON; names in camel case, what is empty left out."""
    found: Json = MessageToDict(message)
    return found


def message_of_decision(decision: Decision) -> pb.Decision:
    """The whole record: facts of the request, every candidate with its scores or the filter that removed it, and
    the state that it was made from.
    """
    request, caller = decision.request, decision.request.caller
    message = pb.Decision(
        id=decision.id,
        rule=decision.rule,
        backend=decision.backend,
        upstream_model=decision.upstream_model,
        rejection=decision.rejection,
        attempt=decision.attempt,
        request_id=decision.request_id,
        downgraded=decision.downgraded,
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
    if decision.seen is not None:
        message.seen.CopyFrom(message_of_seen(decision.seen))
        if decision.matched is not None:
            size = decision.seen.affinity.size
            message.pin.CopyFrom(pb.Pin(expected_bytes=count(decision.matched), prompt_bytes=count(size)))
    return message


def _candidate(candidate: Candidate) -> pb.Candidate:
    scores = [pb.Score(scorer=name, value=value) for name, value in candidate.scores]
    return pb.Candidate(
        backend=candidate.backend, filtered_by=candidate.filtered_by, reason=candidate.reason, scores=scores
    )
