"""Turns of sessions through the stream machine: what a client sends, what its backend gets, and what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from router_ext.config.sections import RouterConfig, Sessions
from router_ext.stream.effects import BodyReply, Effect, HeadersReply, ImmediateReply, Leave, Side
from router_ext.stream.events import RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from tests.fakes.domain import head, record
from tests.fakes.rig import EngineRig, ExchangeRun

JSON: Final = "application/json"
SSE: Final = "text/event-stream"
DONE: Final = b"data: [DONE]\n\n"
CREATE: Final = {"x-kronaxis-session-create": "true"}
UNSAVED: Final = (
    b'{"error":{"message":"Sessions are not available at the moment.","type":"service_unavailable","param":null,'
    b'"code":"session_store_unavailable"}}'
)
UNSAVED_EVENT: Final = b"data: " + UNSAVED + b"\n\n" + DONE
"""What a client gets in the place of an answer, or of its last piece, that could not be kept."""


def with_sessions(config: RouterConfig, **sessions: int) -> RouterConfig:
    """The same with sessions."""
    kept = Sessions(enabled=True, **sessions)  # type: ignore[arg-type]
    return replace(config, server=replace(config.server, sessions=kept))


def user(content: object) -> bytes:
    """A user's message as it is sent and stored."""
    return orjson.dumps({"role": "user", "content": content})


def assistant(content: object) -> bytes:
    """An answer's message as it is stored."""
    return orjson.dumps({"role": "assistant", "content": content})


def body_of(*messages: bytes, stream: bool = False) -> bytes:
    """A chat request for the model ``m-a`` with exactly these messages."""
    fields = b'"model":"m-a","stream":true' if stream else b'"model":"m-a"'
    return b"{" + fields + b',"messages":[' + b",".join(messages) + b"]}"


def said(*contents: object, stream: bool = False) -> bytes:
    """A chat request of the user's messages."""
    return body_of(*map(user, contents), stream=stream)


def plain(content: object, finish: str | None = "stop", usage: tuple[int, int] | None = (8, 2)) -> bytes:
    """A whole plain answer; ``usage`` are the tokens of prompt and answer."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    return orjson.dumps({"choices": [choice], "usage": _usage(usage)})


def events(*contents: str, finish: str | None = "stop", usage: tuple[int, int] | None = (8, 2)) -> tuple[bytes, ...]:
    """The events of a streamed answer: the role, each content, the end, the usage."""
    deltas = ({"role": "assistant", "content": ""}, *({"content": content} for content in contents))
    tokens = (_event({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas)
    last = () if finish is None else (_event({"index": 0, "delta": {}, "finish_reason": finish}),)
    counted = b"" if usage is None else b"data: " + orjson.dumps({"choices": [], "usage": _usage(usage)}) + b"\n\n"
    return (*tokens, *last, *((counted,) if counted else ()), DONE)


def _event(choice: Mapping[str, object]) -> bytes:
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


def _usage(usage: tuple[int, int] | None) -> dict[str, int] | None:
    return None if usage is None else {"prompt_tokens": usage[0], "completion_tokens": usage[1]}


def continues(session_id: str, **headers: str) -> dict[str, str]:
    """The headers that continue a session; underscores in further names stand for dashes."""
    return {"x-kronaxis-session-id": session_id, **{name.replace("_", "-"): headers[name] for name in headers}}


def ends(session_id: str) -> dict[str, str]:
    """The headers that destroy a session after this turn."""
    return {**continues(session_id), "x-kronaxis-session-end": "true"}


@dataclass(slots=True)
class Asked:
    """One exchange. ``sent`` is the body that the backend gets, ``body`` what the client has got so far."""

    rig: EngineRig
    run: ExchangeRun
    sent: bytes
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    left: bool = False

    @property
    def error(self) -> dict[str, str | None]:
        """The error object of the answer."""
        told: dict[str, str | None] = orjson.loads(self.body)["error"]
        return told

    @property
    def session_id(self) -> str:
        """The session's id as the client is told."""
        return self.headers["x-kronaxis-session-id"]

    def answer_head(self, status: int = 200, kind: str = SSE) -> None:
        """The head of the backend's answer."""
        self.status, self.headers["content-type"] = status, kind
        self._take(self.run.feed(ResponseHeaders(status, kind, False)), b"")

    def piece(self, data: bytes, *, end: bool = False) -> bytes:
        """The next piece of the backend's answer; returns what the client gets of it, which is all when nobody looks
        any more.
        """
        before = len(self.body)
        if self.left:
            self.body += data
        else:
            self._take(self.run.feed(ResponseBody(data, end)), data)
        return self.body[before:]

    def settle(self, **changes: object) -> None:
        """The access log entry of the exchange."""
        self.rig.engine.settle(record(self.run.decision_id, **{"status": self.status, **changes}))  # type: ignore[arg-type]

    def _take(self, effects: Sequence[Effect], data: bytes) -> None:
        for effect in effects:
            match effect:
                case HeadersReply(side=Side.RESPONSE, edits=edits):
                    self.headers |= edits.set
                case BodyReply(side=Side.RESPONSE, edits=edits, body=body):
                    for name in edits.remove:
                        self.headers.pop(name, None)
                    self.headers |= edits.set
                    self.status = int(self.headers.pop(":status", self.status))
                    self.body += data if body is None else body
                case ImmediateReply(answer):
                    self.status, self.headers, self.body = answer.status, dict(answer.headers), answer.body
                case Leave():
                    self.left = True


def begin(rig: EngineRig, body: bytes, headers: Mapping[str, str] | None = None) -> Asked:
    """A request up to its backend, or its refusal."""
    run = ExchangeRun(rig)
    effects = run.feed(RequestHeaders(head(headers=headers), False), RequestBody(body, True))
    (reply,) = (effect for effect in effects if isinstance(effect, BodyReply | ImmediateReply))
    changed = reply.body if isinstance(reply, BodyReply) else None
    asked = Asked(rig, run, body if changed is None else changed)
    if isinstance(reply, ImmediateReply):
        asked.status, asked.headers = reply.answer.status, dict(reply.answer.headers)
        asked.body = reply.answer.body
    return asked


def ask(
    rig: EngineRig,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    answer: bytes | Sequence[bytes] = b"",
    status: int = 200,
    kind: str | None = None,
) -> Asked:
    """A whole exchange: a plain answer in one piece, or a streamed one event by event."""
    asked = begin(rig, body, headers)
    if asked.status:
        return asked
    pieces = (answer,) if isinstance(answer, bytes) else tuple(answer)
    asked.answer_head(status, kind or (JSON if isinstance(answer, bytes) else SSE))
    for i, piece in enumerate(pieces):
        asked.piece(piece, end=i == len(pieces) - 1)
    asked.settle()
    return asked


def created(rig: EngineRig, content: object = "hi", answer: str = "Hello.") -> str:
    """A new session of one turn."""
    return ask(rig, said(content), CREATE, plain(answer)).session_id


def messages_of(rig: EngineRig, session_id: str) -> tuple[bytes, ...]:
    """What is stored of a session."""
    return rig.sessions.sessions[session_id].messages
