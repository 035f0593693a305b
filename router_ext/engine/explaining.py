"""What would become of a request, by the very steps that live ones take. Nothing is counted, written, drawn or told."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from router_ext.engine.budgets import Admission, Admitted
from router_ext.engine.caller import read_caller, request_id_of
from router_ext.engine.choosing import Choosing, no_backend
from router_ext.engine.configured import Configured
from router_ext.engine.decider import Decider
from router_ext.engine.experiments import given
from router_ext.engine.gate import Gate, GateChance
from router_ext.engine.intake import OTHER_RULE, Incoming, Intake, other_request, wants_body
from router_ext.engine.rate_limits import RateLimits
from router_ext.engine.shadow import Shadow, ShadowChance
from router_ext.model.decision import Choice, Decision, NoChoice
from router_ext.model.experiment import Assignment
from router_ext.model.rejection import Rejection
from router_ext.model.request import Api
from router_ext.ports import Clock
from router_ext.stream.events import RequestHead

ADMITTED: Final = "admitted"
DOWNGRADED: Final = "downgraded"
REJECTED: Final = "rejected"

MAX_HEADERS: Final = 200

_PATH: Final = re.compile(r"/[\x21-\x7e]{0,8191}")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,256}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class SessionPart(Struct, frozen=True):
    """What a request does to a session: ``create``, ``continue`` or ``end``. ``tokens`` is the context that is sent."""

    action: str
    tokens: int


class Explanation(Struct, frozen=True):
    """What would become of a request, as of now.

    ``decision`` has no id; it is None for a request that is refused before backends are looked at. ``rejection`` is
    None for one that is routed: to ``cluster``. ``budget`` is one of the words above, "" where nobody asks the budgets.
    ``by_chance``: only the request's own id decides the variant of ``assignment``.
    """

    decision: Decision | None = None
    cluster: str = ""
    rejection: Rejection | None = None
    budget: str = ""
    assignment: Assignment | None = None
    by_chance: bool = False
    gate: GateChance | None = None
    shadow: ShadowChance | None = None
    session: SessionPart | None = None


def request_head(path: str, headers: Mapping[str, str]) -> RequestHead:
    """The head of a POST as Envoy would show it; an empty path is that of chat completions. Raises ValueError for what
    no HTTP request can have, with a sentence that quotes nothing.
    """
    if path and not _PATH.fullmatch(path):
        raise ValueError("The path must begin with / and hold printable ASCII without spaces.")
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"There may be {MAX_HEADERS} headers.")
    lowered = {name.lower(): value for name, value in headers.items()}
    if len(lowered) < len(headers):
        raise ValueError("Each header may be given once.")
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in lowered.items()):
        raise ValueError("A header has a name or a value that HTTP does not allow.")
    return RequestHead("POST", path or Api.CHAT.value, lowered)


class Explaining:
    """Explains requests over the live state."""

    def __init__(
        self,
        intake: Intake,
        rate_limits: RateLimits,
        choosing: Choosing,
        decider: Decider,
        gate: Gate,
        *,
        shadow: Shadow,
        clock: Clock,
    ) -> None:
        self._intake = intake
        self._rate_limits = rate_limits
        self._choosing = choosing
        self._decider = decider
        self._gate = gate
        self._shadow = shadow
        self._clock = clock

    async def explain(self, head: RequestHead, body: bytes, now: Configured) -> Explanation:
        """What would become of the request. It does not wait for room as a live one would for a moment."""
        if not wants_body(head):
            return self._explain_other(head)
        caller = read_caller(head)
        if isinstance(caller, Rejection):
            return Explanation(rejection=caller)
        too_many = self._rate_limits.look(caller)
        if too_many is not None:
            return Explanation(rejection=too_many)
        incoming = await self._intake.read(head, caller, body, now, peeks=True)
        if isinstance(incoming, Rejection):
            return Explanation(rejection=incoming)
        admission, choice = self._choosing.look(incoming.request, incoming.chain, incoming.assignment, dry=True)
        if isinstance(choice, NoChoice):
            return self._refused(head, incoming, admission, choice)
        return self._routed(head, incoming, admission, choice, now)

    def _explain_other(self, head: RequestHead) -> Explanation:
        request, backend = other_request(head), self._decider.first_available()
        if backend is None:
            nobody = NoChoice(OTHER_RULE, (), full=False)
            rejection = no_backend(nobody, self._clock)
            return Explanation(self._decider.unmade(request, nobody, rejection=rejection), rejection=rejection)
        decision = self._decider.unmade(request, Choice(backend, OTHER_RULE, "", ()), request_id_of(head))
        return Explanation(decision, backend.cluster)

    def _refused(self, head: RequestHead, incoming: Incoming, admission: Admission, nobody: NoChoice) -> Explanation:
        rejection = self._choosing.rejection(admission, nobody)
        decision = self._decider.unmade(incoming.request, nobody, request_id_of(head), rejection=rejection)
        budget = ADMITTED if isinstance(admission, Admitted) else REJECTED
        return Explanation(decision, rejection=rejection, budget=budget, session=_session(incoming))

    def _routed(
        self, head: RequestHead, incoming: Incoming, admission: Admission, choice: Choice, now: Configured
    ) -> Explanation:
        request, backend = incoming.request, choice.backend
        gate = None
        if incoming.body is not None:
            gate = self._gate.chance(now.config.quality_gate, head, incoming.body, backend.name)
        return Explanation(
            decision=self._decider.unmade(request, choice, request_id_of(head)),
            cluster=backend.cluster,
            budget=ADMITTED if isinstance(admission, Admitted) else DOWNGRADED,
            assignment=given(incoming.assignment, choice),
            by_chance=not request.caller.persona_id and (incoming.turn is None or incoming.turn.creates),
            gate=gate,
            shadow=None if choice.downgraded else self._shadow.chance(request, backend.name),
            session=_session(incoming),
        )


def _session(incoming: Incoming) -> SessionPart | None:
    turn = incoming.turn
    if turn is None:
        return None
    action = "create" if turn.creates else "end" if turn.ends else "continue"
    return SessionPart(action, turn.tokens)
