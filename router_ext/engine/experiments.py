"""A/B tests over live traffic: who takes part, in which variant, and how the variants do.

A test in mode ``split`` gives each caller one of two backends. Nothing of a caller is remembered: its variant follows
from what it is known by.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final

from router_ext.config.sections import AbTest
from router_ext.engine.caller import REQUEST_ID
from router_ext.engine.turns import OpenTurn
from router_ext.engine.variant_stats import VariantStats
from router_ext.model.backend import Backend
from router_ext.model.decision import Choice
from router_ext.model.experiment import Assignment, Variant
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Outcome
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.rule import Match
from router_ext.ports import Clock, Telemetry
from router_ext.routing.rules import matches
from router_ext.routing.split import caller_key, variant
from router_ext.stream.events import RequestHead

Json = dict[str, Any]

SPLIT: Final = "split"
"""The mode in which a test takes part in routing."""

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Of one test, from ``since_s`` (seconds since the epoch) on."""

    since_s: float
    variants: dict[Variant, VariantStats] = field(default_factory=lambda: {"a": VariantStats(), "b": VariantStats()})


def key_of(head: RequestHead, caller: Caller, turn: OpenTurn | None) -> str:
    """What the caller of a request is known by: its persona, else its session, which has its id from the first turn on,
    else this request alone. "" when it has not even an id.
    """
    session_id = "" if turn is None else turn.session_id
    return caller_key(caller.persona_id, session_id, head.headers.get(REQUEST_ID, ""))


def given(assignment: Assignment | None, choice: Choice) -> Assignment | None:
    """The assignment of a request for which ``choice`` was made. One that its service's budget sends elsewhere takes
    part in no test.
    """
    if assignment is None or choice.downgraded:
        return None
    return assignment.given_to(choice.backend.name)


class Experiments:
    """The tests of one configuration. Their statistics are those of this process."""

    def __init__(self, telemetry: Telemetry, clock: Clock) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._tests: tuple[AbTest, ...] = ()
        self._splitting: tuple[AbTest, ...] = ()
        self._statistics: dict[_Identity, _Statistics] = {}
        self._unknown_callers = 0

    def configure(self, ab_tests: Iterable[AbTest]) -> None:
        """Takes over the tests of a new configuration. The statistics of a test that keeps its name and its variants go
        on, whatever else of it changes; those of others begin anew or are dropped.
        """
        self._tests = tuple(ab_tests)
        splits = [test for test in self._tests if test.mode == SPLIT]
        self._splitting = tuple(test for test in splits if test.active)
        before, now = self._statistics, self._clock.wall()
        self._statistics = {_identity(test): before.get(_identity(test)) or _Statistics(now) for test in splits}

    def assign(self, request: InferenceRequest, key: str) -> Assignment | None:
        """The variant of the caller ``key`` in the first active test, in the file's order, that matches the request;
        None when none does. Each request with the key "" is a caller of its own.
        """
        test = next((test for test in self._splitting if matches(test.match, request)), None)
        if test is None:
            return None
        chosen = variant(test.name, key or self._unknown_caller(), test.split_pct)
        own, other = (test.variant_a, test.variant_b) if chosen == "a" else (test.variant_b, test.variant_a)
        return Assignment(test.name, chosen, own, other)

    def _unknown_caller(self) -> str:
        self._unknown_callers += 1
        return str(self._unknown_callers)

    def note(self, backend: Backend, outcome: Outcome) -> None:
        """A request ended; ``backend`` was the last one that was asked. One without an assignment changes nothing.

        What another backend answered does not count for the variant, but that the variant failed before does.
        """
        assignment = outcome.assignment
        if assignment is None:
            return
        self._telemetry.ab_request(assignment.test, assignment.variant, fell_back=assignment.fell_back)
        statistics = self._statistics.get(_identity_of(assignment))
        if statistics is not None:
            _count(statistics.variants[assignment.variant], assignment, backend, outcome)

    def report(self) -> list[Json]:
        """Every test in the file's order, as ``GET /api/ab-tests`` shows it; statistics for those in mode split."""
        return [_shown(test, self._statistics.get(_identity(test))) for test in self._tests]


def _identity(test: AbTest) -> _Identity:
    return test.name, test.variant_a, test.variant_b


def _identity_of(assignment: Assignment) -> _Identity:
    own, other = assignment.backend, assignment.other_backend
    return (assignment.test, own, other) if assignment.variant == "a" else (assignment.test, other, own)


def _count(stats: VariantStats, assignment: Assignment, backend: Backend, outcome: Outcome) -> None:
    if assignment.fell_back:
        stats.fell_back()
    elif assignment.is_served_by(backend.name):
        stats.ended(outcome, 0 if outcome.usage is None else cost_micro_usd(backend, outcome.usage))
    else:
        stats.moved_on()


def _shown(test: AbTest, statistics: _Statistics | None) -> Json:
    about = {
        "name": test.name,
        "mode": test.mode,
        "active": test.active,
        "match": _conditions(test.match),
        "split_pct": test.split_pct,
    }
    variants: dict[Variant, Json] = {"a": {"backend": test.variant_a}, "b": {"backend": test.variant_b}}
    if statistics is None:
        return {**about, "variants": variants}
    figures = {name: {**shown, **statistics.variants[name].report()} for name, shown in variants.items()}
    return {**about, "since": _utc(statistics.since_s), "variants": figures}


def _conditions(match: Match) -> Json:
    """Those that are set."""
    values = {item.name: getattr(match, item.name) for item in fields(Match)}
    return {name: value for name, value in values.items() if value}


def _utc(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
