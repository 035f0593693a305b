"""Shadows: what another backend would have said to a request that is answered already.

The client gets variant A's answer as ever. Once its last part was given, variant B is asked the same, and what it says
is compared and forgotten. A shadow counts in B's ``max_concurrent`` while it runs and in the ledger; in sessions, pins,
times to the first token, circuit breakers, pauses and budgets it does not, neither A's nor B's.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from router_ext.config.policy import SHADOW as SHADOW_MODE
from router_ext.config.sections import AbTest
from router_ext.engine.attempts import Attempt
from router_ext.engine.charging import Charges
from router_ext.engine.decider import Decider
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.limits import KeptBytes
from router_ext.engine.pool import Pool
from router_ext.engine.shadow_call import Said, ask, shadow_call
from router_ext.engine.shadow_compare import Side, compared
from router_ext.engine.shadow_primary import Place, Primary
from router_ext.engine.shadow_stats import ShadowStats
from router_ext.model.decision import Choice, Decision
from router_ext.model.experiment import VARIANT_RULE, Assignment
from router_ext.model.money import SHADOW
from router_ext.model.request import TEXT_PATHS, InferenceRequest
from router_ext.model.shadow import Comparison, ShadowResult
from router_ext.ports import Clock, Dispatcher, SchemaJudge, ShadowSink, Telemetry
from router_ext.routing.rules import matches
from router_ext.routing.split import variant
from router_ext.stream.effects import Relayed

MAX_HELD_BYTES: Final = 128 << 20
"""Memory for the requests and the answers of all shadows that are under way."""

_Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ShadowTools:
    """What shadows use. ``released`` is called whenever a backend has room for one request more."""

    pool: Pool
    decider: Decider
    charges: Charges
    judge: SchemaJudge
    log: ShadowSink
    dispatcher: Dispatcher
    telemetry: Telemetry
    clock: Clock
    released: Callable[[], None]


class ShadowChance(Struct, frozen=True):
    """``probability`` (0..1) is the share of such requests that variant B of ``test`` is asked, too."""

    test: AbTest
    probability: float


class _Copy(Struct, frozen=True):
    """A request that variant B is to be asked, and what variant A said to it."""

    test: AbTest
    kept: KeptRequest
    decision: Decision
    a: Side


class Shadow:
    """The shadows of one configuration. Used from one event loop; their figures are those of this process."""

    def __init__(self, tools: ShadowTools) -> None:
        self._tools = tools
        self._tests: tuple[AbTest, ...] = ()
        self._shadowed: dict[str, AbTest] = {}
        self._stats: dict[_Identity, ShadowStats] = {}
        self._timeout_s = 0.0
        self._limit = 0
        self._under_way: dict[str, int] = {}
        self._memory = KeptBytes(MAX_HELD_BYTES)
        self._calls: set[asyncio.Task[None]] = set()

    def configure(self, ab_tests: Iterable[AbTest], *, timeout_s: float, max_body_bytes: int) -> None:
        """Takes over a new configuration. ``timeout_s`` bounds a call, ``max_body_bytes`` each answer. The figures of a
        test that keeps its name and its variants go on; those of others begin anew or are dropped.
        """
        self._tests = tuple(ab_tests)
        self._timeout_s = timeout_s
        self._limit = max_body_bytes
        before, now = self._stats, self._tools.clock.monotonic()
        self._shadowed = {test.name: test for test in self._tests if test.mode == SHADOW_MODE}
        identities = map(_identity, self._shadowed.values())
        self._stats = {identity: before.get(identity) or ShadowStats(now) for identity in identities}

    # Who has a shadow

    def test_of(self, request: InferenceRequest) -> AbTest | None:
        """The test by which variant A is to answer: the first active one of any mode that matches, in the file's order,
        if its mode is ``shadow``.
        """
        active = (test for test in self._tests if test.active and matches(test.match, request))
        first = next(active, None)
        return first if first is not None and first.mode == SHADOW_MODE else None

    def assign(self, request: InferenceRequest) -> Assignment | None:
        """The same as variant A for whoever asks; the other variant is none to fall back to."""
        test = self.test_of(request)
        return None if test is None else Assignment(test.name, "a", test.variant_a, test.variant_a)

    def chance(self, request: InferenceRequest, backend: str) -> ShadowChance | None:
        """What may follow a request that ``backend`` answers; None where nothing does."""
        test = self.test_of(request)
        if test is None or backend != test.variant_a or request.path not in TEXT_PATHS:
            return None
        return ShadowChance(test, test.split_pct / 100)

    def look(self, exchange: OpenExchange) -> None:
        """Notes in a new exchange that its answer is to be compared: ``split_pct`` percent of those that variant A was
        given, drawn by the decision's id. The router then has to bring the answer itself.
        """
        decision, assignment = exchange.attempt.decision, exchange.assignment
        test = None if assignment is None else self._shadowed.get(assignment.test)
        if test is None or decision.backend != test.variant_a:
            return
        self._stats[_identity(test)].request(self._tools.clock.monotonic())
        if decision.request.path not in TEXT_PATHS or not _is_drawn(test, decision):
            return
        if exchange.kept is None or not self._has_place(test):
            self._ended(test, ShadowResult.DROPPED)
        else:
            exchange.shadow = test

    def _has_place(self, test: AbTest) -> bool:
        return self._under_way.get(test.name, 0) < test.max_inflight

    # The answer of variant A

    def teed(self, exchange: OpenExchange | None, parts: AsyncGenerator[Relayed]) -> AsyncGenerator[Relayed]:
        """The parts of an answer, unchanged and as soon as they are there. After the last one of a whole 2xx answer a
        shadow begins, where the exchange is to have one.
        """
        if exchange is None or exchange.shadow is None:
            return parts
        kept, test = exchange.kept, exchange.shadow
        place = None if kept is None else self._place(test, kept.size)
        if kept is None or place is None:
            self._ended(test, ShadowResult.DROPPED)
            return parts
        return self._followed(exchange, test, kept, place, parts)

    def _place(self, test: AbTest, size: int) -> Place | None:
        if not self._has_place(test):
            return None
        place = Place(test, self._under_way, self._memory)
        if place.grow(size):
            return place
        place.free()
        return None

    async def _followed(
        self,
        exchange: OpenExchange,
        test: AbTest,
        kept: KeptRequest,
        place: Place,
        parts: AsyncGenerator[Relayed],
    ) -> AsyncGenerator[Relayed]:
        primary = Primary(place, self._limit)
        try:
            async with aclosing(parts):
                async for part in parts:
                    primary.take(part, self._tools.clock.monotonic())
                    yield part
        finally:
            # Also for a client that left; and with its last part Envoy may end the stream before it asks for more.
            a = primary.of(exchange, test)
            if isinstance(a, ShadowResult):
                place.free()
                self._ended(test, a)
            else:
                self._begin(_Copy(test, kept, exchange.attempt.decision, a), place)

    # The answer of variant B

    def _begin(self, copy: _Copy, place: Place) -> None:
        def over(task: asyncio.Task[None]) -> None:
            self._calls.discard(task)
            place.free()
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._tools.telemetry.fault("shadow", error)

        task = asyncio.create_task(self._run(copy, place), name="shadow")
        self._calls.add(task)
        task.add_done_callback(over)

    async def _run(self, copy: _Copy, place: Place) -> None:
        result = await self._compare(copy, place)
        self._ended(copy.test, result)

    async def _compare(self, copy: _Copy, place: Place) -> ShadowResult:
        tools, request = self._tools, copy.decision.request
        choice = tools.decider.choose_only(copy.test.variant_b, VARIANT_RULE, request, None, frozenset())
        if choice is None:
            return ShadowResult.SKIPPED
        started = tools.clock.monotonic()
        said = await self._ask(copy, choice)
        took_s = tools.clock.monotonic() - started
        if said.body is None:
            return ShadowResult.FAILED
        if not place.grow(len(said.body)):
            return ShadowResult.DROPPED
        both = await compared(copy.kept, copy.a, Side(choice.backend, said.body, took_s, said.usage), tools.judge)
        if both is None:
            return ShadowResult.UNREADABLE
        figures = both.a, both.b, both.similarity, both.length_ratio
        self._keep(copy.test, Comparison(copy.test.name, copy.decision.id, tools.clock.wall(), *figures))
        return ShadowResult.COMPARED

    async def _ask(self, copy: _Copy, choice: Choice) -> Said:
        """Asks variant B. Its errors and its times teach nothing; what it costs is booked, whatever it says."""
        tools, backend, slot = self._tools, choice.backend, self._tools.pool[choice.backend.name]
        decision = replace(
            copy.decision, backend=backend.name, rule=VARIANT_RULE, upstream_model=choice.upstream_model, candidates=()
        )
        slot.acquire()
        try:
            call = shadow_call(copy.kept, Attempt(decision, slot, tools.clock.monotonic(), kind=SHADOW))
            said = await ask(tools.dispatcher, call, self._timeout_s, self._limit)
        finally:
            slot.release()
            tools.released()
        if said.usage is not None:
            tools.charges.book(decision, backend, SHADOW, said.usage)
        return said

    # What is known

    def _keep(self, test: AbTest, comparison: Comparison) -> None:
        self._tools.telemetry.shadow_similarity(test.name, comparison.similarity)
        self._tools.log.offer(comparison)
        stats = self._stats.get(_identity(test))
        if stats is not None:
            stats.compared(comparison)

    def _ended(self, test: AbTest, result: ShadowResult) -> None:
        self._tools.telemetry.shadow_ended(test.name, result)
        stats = self._stats.get(_identity(test))
        if stats is not None:
            stats.ended(result)

    def report(self, test_name: str) -> dict[str, Any] | None:
        """The figures of a configured test in mode ``shadow``, None for any other name."""
        test = self._shadowed.get(test_name)
        if test is None:
            return None
        return self._stats[_identity(test)].report(test.similarity_threshold, self._tools.clock.monotonic())

    def with_reports(self, tests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tests as ``Experiments.report`` shows them, those in mode ``shadow`` with their figures."""
        figures = {test["name"]: self.report(test["name"]) for test in tests}
        return [test if figures[test["name"]] is None else {**test, "shadow": figures[test["name"]]} for test in tests]

    async def close(self) -> None:
        """Ends the shadows that are under way."""
        calls = tuple(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def _is_drawn(test: AbTest, decision: Decision) -> bool:
    return variant(test.name, decision.id, test.split_pct) == "b"


def _identity(test: AbTest) -> _Identity:
    return test.name, test.variant_a, test.variant_b
