"""What a request asks for, read from its headers and its body before any backend is looked at."""

from typing import Final

from msgspec import Struct

from router_ext.engine.caches import Caches
from router_ext.engine.configured import Configured
from router_ext.engine.experiments import Experiments, key_of
from router_ext.engine.sessions import Sessions
from router_ext.engine.shadow import Shadow
from router_ext.engine.turns import OpenTurn
from router_ext.model.experiment import Assignment
from router_ext.model.headers import SESSION_HEADERS
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import API_BY_PATH, Caller, InferenceRequest
from router_ext.payload.inference import InferenceBody
from router_ext.payload.output_limit import UNLIMITED_TOKENS
from router_ext.payload.prompt import PromptChain
from router_ext.payload.session_request import owner_of, read_session
from router_ext.stream.events import RequestHead

MAX_PATH: Final = 256
"""How much of an unknown path a decision keeps."""

OTHER_RULE: Final = "other"
"""The rule name of requests that are no inference."""

_SOMEBODY: Final = "?"
"""The caller of a request that is not sent and that nothing tells of."""


def wants_body(head: RequestHead) -> bool:
    """True for requests whose body decides where they go."""
    return head.method == "POST" and head.path in API_BY_PATH


def other_request(head: RequestHead) -> InferenceRequest:
    """A request that is no inference, as a decision keeps it."""
    return InferenceRequest(head.path[:MAX_PATH], Caller())


class Incoming(Struct, frozen=True):
    """An inference request. ``body``, hydrated where a ``turn`` of a session is asked for, is None where nobody saw it.

    ``chain`` is None where pins have no say, ``assignment`` where no A/B test has.
    """

    request: InferenceRequest
    body: InferenceBody | None = None
    turn: OpenTurn | None = None
    chain: PromptChain | None = None
    assignment: Assignment | None = None


class Intake:
    """Reads requests. With ``peeks`` one that will not be sent: then nothing is counted, told, or used up for it."""

    def __init__(self, sessions: Sessions, caches: Caches, shadow: Shadow, experiments: Experiments) -> None:
        self._sessions = sessions
        self._caches = caches
        self._shadow = shadow
        self._experiments = experiments

    async def read(
        self,
        head: RequestHead,
        caller: Caller,
        body: bytes | None,
        now: Configured,
        *,
        can_follow: bool = True,
        peeks: bool = False,
    ) -> Incoming | Rejection:
        """The request, or why it is refused. ``body`` and ``can_follow`` are those of ``Ask``."""
        content = None if body is None else now.read(head, caller, body)
        if isinstance(content, Rejection):
            return content
        turn = await self._open_turn(head, caller, content, now, can_follow=can_follow, peeks=peeks)
        if isinstance(turn, Rejection):
            return turn
        if content is None:
            request = InferenceRequest(head.path, caller, max_output_tokens=UNLIMITED_TOKENS)
            return Incoming(request, assignment=self._assignment(request, head, None, peeks=peeks))
        sent = content if turn is None else turn.body
        chain = self._chain(sent, turn)
        return Incoming(sent.request, sent, turn, chain, self._assignment(sent.request, head, turn, peeks=peeks))

    async def _open_turn(
        self,
        head: RequestHead,
        caller: Caller,
        content: InferenceBody | None,
        now: Configured,
        *,
        can_follow: bool,
        peeks: bool,
    ) -> OpenTurn | Rejection | None:
        """The turn of a session that the request asks for, None for a request without one."""
        if not any(name in head.headers for name in SESSION_HEADERS):
            return None
        wish = read_session(head.headers, head.path)
        if wish is not None and not now.config.server.sessions.enabled:
            return Rejection(Reason.SESSIONS_DISABLED, "Sessions are not enabled on this router.")
        if wish is None or isinstance(wish, Rejection):
            return wish
        if content is None or not can_follow:
            return Rejection(Reason.SESSIONS_UNSUPPORTED, "Sessions need Envoy's body modes as they are generated.")
        return await self._sessions.open(wish, owner_of(head.headers, caller.service), content, now, peeks=peeks)

    def _chain(self, body: InferenceBody, turn: OpenTurn | None) -> PromptChain | None:
        chain = self._caches.read(body.request, body.envelope, None if turn is None else turn.start)
        if chain is not None and turn is not None:
            turn.chain_end = chain.start
        return chain

    def _assignment(
        self, request: InferenceRequest, head: RequestHead, turn: OpenTurn | None, *, peeks: bool
    ) -> Assignment | None:
        key = key_of(head, request.caller, turn)
        return self._shadow.assign(request) or self._experiments.assign(request, key or _SOMEBODY if peeks else key)
