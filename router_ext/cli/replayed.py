"""Recorded decisions under another configuration: who would go elsewhere."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from router_ext.cli.recorded import RecordError
from router_ext.config.sections import RouterConfig
from router_ext.decisions.state import asked_of_message
from router_ext.doctor.node import printable
from router_ext.engine.configured import Configured
from router_ext.model.decision import Choice
from router_ext.model.experiment import VARIANT_RULE
from router_ext.model.rejection import Reason
from router_ext.model.request import API_BY_PATH
from router_ext.v1 import decision_pb2 as pb


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """Requests of ``rule`` that would go to ``after`` by ``new_rule`` in place of ``before``; "" is a refusal."""

    rule: str
    before: str
    after: str
    new_rule: str


@dataclass(slots=True)
class Replay:
    """What came of it. ``by_rule`` counts what was replayed by its recorded rule, ``left_out`` the rest by reason."""

    by_rule: Counter[str] = field(default_factory=Counter)
    moves: Counter[Move] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def replayed(self) -> int:
        """How many decisions were made again."""
        return self.by_rule.total()

    @property
    def moved(self) -> int:
        """How many of them came out otherwise."""
        return self.moves.total()

    def moved_of(self, rule: str) -> int:
        """The same of one recorded rule."""
        return sum(count for move, count in self.moves.items() if move.rule == rule)

    def report(self) -> dict[str, Any]:
        """As JSON; null is a refusal."""
        return {
            "replayed": self.replayed,
            "moved": self.moved,
            "left_out": dict(self.left_out.most_common()),
            "rules": {
                rule: {"replayed": count, "moved": self.moved_of(rule)} for rule, count in self.by_rule.most_common()
            },
            "moves": [
                {
                    "rule": move.rule,
                    "from": move.before or None,
                    "to": move.after or None,
                    "new_rule": move.new_rule,
                    "count": count,
                }
                for move, count in self.moves.most_common()
            ],
        }


LATER_ATTEMPT: Final = "a later attempt"
NOT_DECIDED: Final = "refused before it was decided"
NO_INFERENCE: Final = "no inference"
A_TEST: Final = "an A/B test decided"
A_BUDGET: Final = "a spent budget decided"
NO_STATE: Final = "no state recorded"


def replay(decisions: Iterable[pb.Decision], config: RouterConfig) -> Replay:
    """Makes every decision again. Raises RecordError for a record of an unknown form."""
    pipeline = Configured.of(config, created=0).pipeline
    backends = {backend.name: backend for backend in config.backends}
    result = Replay()
    for decision in decisions:
        reason = _left_out(decision)
        if reason:
            result.left_out[reason] += 1
            continue
        try:
            choice = pipeline.route(asked_of_message(decision, backends))
        except ValueError as error:
            raise RecordError(f"decision {printable(decision.id)}: {error}") from None
        after = choice.backend.name if isinstance(choice, Choice) else ""
        result.by_rule[decision.rule] += 1
        if after != decision.backend:
            result.moves[Move(decision.rule, decision.backend, after, choice.rule)] += 1
    return result


def _left_out(decision: pb.Decision) -> str:
    """Why rules alone do not say where it goes; "" when they do."""
    if not decision.rule:
        return NOT_DECIDED
    if decision.attempt > 1:
        return LATER_ATTEMPT
    if decision.request.path not in API_BY_PATH:
        return NO_INFERENCE
    if decision.downgraded or decision.rejection == Reason.BUDGET_EXCEEDED:
        return A_BUDGET
    if decision.rule == VARIANT_RULE:
        return A_TEST
    return "" if decision.HasField("seen") else NO_STATE
