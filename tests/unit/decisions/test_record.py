"""The decision record as a message of the project's own contract."""

from router_ext.decisions.record import message_of_decision
from router_ext.model.decision import Candidate, Decision
from router_ext.model.request import Caller, InferenceRequest
from router_ext.v1 import decision_pb2 as pb

DECISION = Decision(
    id="p-1",
    time_s=1_796_000_000.25,
    request=InferenceRequest("/v1/chat/completions", Caller("s", "c", "p", 3, "u"), "alias", True, "vision", 77),
    rule="r",
    backend="a",
    upstream_model="m",
    candidates=(
        Candidate("a", scores=(("order", 0.0), ("in_flight", 2.0))),
        Candidate("b", filtered_by="health", reason="is down"),
    ),
)


def test_every_part_of_a_decision_survives_the_wire() -> None:
    """Facts, candidates, scores and reasons come back from the bytes as they went in."""
    message = pb.Decision.FromString(message_of_decision(DECISION).SerializeToString())
    facts = message.request
    assert (message.id, message.rule, message.backend, message.upstream_model) == ("p-1", "r", "a", "m")
    assert message.time.ToJsonString() == "2026-11-30T00:53:20.250Z"
    assert (facts.service, facts.call_type, facts.priority, facts.tier) == ("s", "c", "p", 3)
    assert (facts.model, facts.content_type, facts.stream, facts.body_bytes) == ("alias", "vision", True, 77)
    assert [(score.scorer, score.value) for score in message.candidates[0].scores] == [("order", 0), ("in_flight", 2)]
    assert (message.candidates[1].filtered_by, message.candidates[1].reason) == ("health", "is down")
