"""Begins a session from messages, for a caller who will go on with it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson

from router_ext.admin.audit import AuditSink
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes.sessions import NewSession, SessionCreated
from router_ext.config.problem import Problem
from router_ext.config.sections import Server
from router_ext.model.rejection import Rejection
from router_ext.model.session import Turn
from router_ext.payload.envelope import read_envelope
from router_ext.payload.session_request import owner_of
from router_ext.payload.tokens import TokenRatio
from router_ext.payload.transcript import read_messages
from router_ext.ports import Clock, SessionStore, Telemetry

_PLACE: Final = "body.messages"


@dataclass(frozen=True, slots=True)
class SessionDesk:
    """Where sessions are kept. ``store`` gives None while they are not enabled; ``server`` is asked at each request."""

    store: Callable[[], SessionStore | None]
    server: Callable[[], Server]
    telemetry: Telemetry
    sink: AuditSink
    clock: Clock

    async def create(self, wanted: NewSession, *, dry_run: bool) -> SessionCreated:
        """Keeps the conversation. Raises RefusedError, and SessionStoreError when the store is away.

        Nothing of the credential is kept but the digest that every request of its caller has.
        """
        store = self.store()
        if store is None:
            raise disabled()
        _check_service(wanted.service)
        messages = _read(wanted)
        size = sum(map(len, messages))
        tokens = TokenRatio().estimate("", size)
        self._check_size(size, tokens)
        session_id = None if dry_run else f"sess_{uuid.uuid4()}"
        if session_id is not None:
            turn = Turn(messages, estimated_tokens=tokens)
            await store.create(session_id, _owner(wanted), turn, self.clock.wall())
            self.telemetry.session_created()
        created = session_id is not None
        return SessionCreated(
            id=session_id, created=created, dry_run=dry_run, messages=len(messages), tokens=tokens, bytes=size
        )

    def _check_size(self, size: int, tokens: int) -> None:
        """As a client's: one that the store would give up at once, or no turn could continue, is refused."""
        server = self.server()
        if tokens > server.sessions.max_context_tokens:
            limit = server.sessions.max_context_tokens
            message = f"The context would have about {tokens} tokens; a session may have {limit}."
            raise RefusedError(413, "session_too_long", message)
        if size > min(server.max_body_bytes, server.sessions.max_bytes):
            raise RefusedError(413, "body_too_large", "The messages are larger than a request or the store may be.")


def disabled() -> RefusedError:
    """What there is to say without sessions."""
    return RefusedError(404, "sessions_disabled", "Sessions are not enabled on this router.")


def _check_service(service: str) -> None:
    """No caller could send another one."""
    if not (service.isascii() and (service.isprintable() or not service)):
        problem = Problem("body.service", 0, "must be printable ASCII characters")
        raise RefusedError(422, "invalid_request", "The request does not fit: see problems.", problems=[problem])


def _read(wanted: NewSession) -> tuple[bytes, ...]:
    """The messages as a client would have sent them."""
    try:
        raw = orjson.dumps({"messages": wanted.messages})
    except (orjson.JSONEncodeError, RecursionError):
        raise _invalid("holds what JSON cannot carry, or nests too deeply") from None
    envelope = read_envelope(raw)
    messages = envelope if isinstance(envelope, Rejection) else read_messages(envelope)
    if isinstance(messages, Rejection):
        raise _invalid(messages.message)
    return messages


def _invalid(message: str) -> RefusedError:
    problem = Problem(_PLACE, 0, message)
    return RefusedError(422, "invalid_messages", "The messages cannot be kept: see problems.", problems=[problem])


def _owner(wanted: NewSession) -> str:
    credential = wanted.credential
    headers: dict[str, str] = {}
    if credential is not None:
        headers[credential.header] = credential.value.get_secret_value()
    return owner_of(headers, wanted.service)
