"""From a request to the backend that serves it, or to the refusal: within the budget, and with a little patience."""

import math
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from router_ext.config.policy import DOWNGRADE, REJECT
from router_ext.engine.budgets import Admission, Admitted, Budgets, Downgraded, Rejected
from router_ext.engine.decider import Decider
from router_ext.engine.releases import Releases
from router_ext.model.decision import Choice, NoChoice
from router_ext.model.experiment import Assignment
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import InferenceRequest
from router_ext.payload.prompt import PromptChain
from router_ext.ports import Clock, Telemetry

ROOM_WAIT_S: Final = 0.3
"""How long a request waits for room when every backend is full. The end of a request is known one access log batch
(50 ms) after it happened, so an answer of "full" may be that much out of date.
"""

BUDGET_RULE: Final = "budget"
"""The rule name of requests that are downgraded or rejected."""


@dataclass(frozen=True, slots=True)
class NotChosen:
    """A request that is refused, and the record of why nobody serves it."""

    rejection: Rejection
    nobody: NoChoice


class Choosing:
    """Asks the budgets, then the A/B test, then the rules."""

    def __init__(
        self, decider: Decider, budgets: Budgets, releases: Releases, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._decider = decider
        self._budgets = budgets
        self._releases = releases
        self._telemetry = telemetry
        self._clock = clock

    async def choose(
        self, request: InferenceRequest, chain: PromptChain | None, assignment: Assignment | None = None
    ) -> Choice | NotChosen:
        """The backend for a request. There is no await between the last look at budgets and backends and the return:
        commit without one, too. ``assignment`` is the caller's in an A/B test.
        """
        admission, choice = self.look(request, chain, assignment)
        if isinstance(choice, NoChoice) and choice.full:
            admission, choice = await self._look_with_patience(request, chain, assignment)
        if not isinstance(admission, Admitted):
            self._telemetry.budget_action(request.caller, DOWNGRADE if isinstance(choice, Choice) else REJECT)
        if isinstance(choice, Choice):
            return choice
        return NotChosen(self.rejection(admission, choice), choice)

    def look(
        self,
        request: InferenceRequest,
        chain: PromptChain | None,
        assignment: Assignment | None,
        *,
        dry: bool = False,
    ) -> tuple[Admission, Choice | NoChoice]:
        """What the budgets say at this instant, and the backend. ``dry`` is as in ``Decider.choose``."""
        admission = self._budgets.admit(request.caller.service)
        match admission:
            case Admitted():
                return admission, self._decider.choose_for(assignment, request, chain, dry=dry)
            case Downgraded(target):
                choice = self._decider.choose_named(target, BUDGET_RULE, request, chain, dry=dry)
                return admission, replace(choice, downgraded=True) if isinstance(choice, Choice) else choice
            case Rejected():
                return admission, NoChoice(BUDGET_RULE, (), full=False)

    async def _look_with_patience(
        self, request: InferenceRequest, chain: PromptChain | None, assignment: Assignment | None
    ) -> tuple[Admission, Choice | NoChoice]:
        """Looks again after each request that ends, for a short while."""
        deadline = self._clock.monotonic() + ROOM_WAIT_S
        admission, choice = self.look(request, chain, assignment)
        while isinstance(choice, NoChoice) and choice.full:
            left = deadline - self._clock.monotonic()
            try:
                await self._releases.wait(max(0.0, left))
            except TimeoutError:
                break
            admission, choice = self.look(request, chain, assignment)
        return admission, choice

    def rejection(self, admission: Admission, nobody: NoChoice) -> Rejection:
        """What the client is told when nobody serves."""
        match admission:
            case Admitted():
                return no_backend(nobody, self._clock)
            case Downgraded():
                message = "The daily budget is spent, and the backend for what comes after that cannot serve now."
                after_s = no_backend(nobody, self._clock).retry_after_s
                return Rejection(Reason.BUDGET_EXCEEDED, message, retry_after_s=after_s)
            case Rejected(after_s):
                return Rejection(Reason.BUDGET_EXCEEDED, "The daily budget is spent.", retry_after_s=after_s)


def no_backend(nobody: NoChoice, clock: Clock) -> Rejection:
    """The refusal of a request that no backend can serve."""
    if nobody.full:
        return Rejection(Reason.NO_BACKEND, "Every backend that can serve this request is full.", retry_after_s=1)
    message, after_s = "No backend can serve this request now.", 5
    if nobody.paused_until is not None:
        after_s = max(1, math.ceil(nobody.paused_until - clock.monotonic()))
    return Rejection(Reason.NO_BACKEND, message, retry_after_s=after_s)
