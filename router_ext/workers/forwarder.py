"""Hands requests of the admin API to the workers, whichever routes these are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from router_ext.admin import sessions
from router_ext.admin.actor import PEER_HEADER, WHO_HEADER, actor_of
from router_ext.admin.config import REREAD_FILE_PATH, REREAD_PATH
from router_ext.admin.refusal import refusal
from router_ext.workers.client import (
    CHANGE_TIMEOUT_S,
    WorkerAnswer,
    WorkerAwayError,
    WorkerRequest,
    ask_all,
    ask_any,
    ask_one,
)
from router_ext.workers.merge_backends import merged_backends, merged_queues
from router_ext.workers.place import WorkerFolder

RELOAD_PATH: Final = "/api/config/reload"

_RETRY_AFTER_S: Final = 2
_OK: Final = 200
_ASKS_ONLY: Final = frozenset({"GET", "HEAD"})

Merge = Callable[[Sequence[dict[str, Any]]], dict[str, Any]]

_MERGES: Final[Mapping[str, Merge]] = {"/api/backends": merged_backends, "/api/queue": merged_queues}
"""What each worker sees in its own way. Of all else any of them knows as much as the others."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a router. ``indexes`` are those that there should be."""

    folder: WorkerFolder
    indexes: Callable[[], Sequence[int]]


class Forwarder:
    """ASGI middleware that answers requests for ``routes`` by what a worker says, and leaves others alone.

    A change is made by one worker. The others are told before the answer goes out; one that does not hear of it looks
    for changes by itself. ``read_only`` are paths whose POST changes nothing.
    """

    def __init__(
        self, app: ASGIApp, workers: Workers, routes: Sequence[BaseRoute], read_only: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self._workers = workers
        self._routes = routes
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers for the workers, or lets the application do so."""
        if scope["type"] == "http" and any(route.matches(scope)[0] is Match.FULL for route in self._routes):
            answer = await self._answer(Request(scope, receive))
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        asked = await _forwarded(request)
        path = request.url.path
        try:
            if asked.method in _ASKS_ONLY and path in _MERGES:
                return await self._merged(asked, _MERGES[path])
            if asked.method in _ASKS_ONLY or path in self._read_only:
                return shown(await ask_any(self._workers.folder, self._workers.indexes(), asked))
            return await self._changed(asked, path)
        except WorkerAwayError as error:
            return _unknown() if error.reached else no_worker()

    async def _merged(self, asked: WorkerRequest, merge: Merge) -> Response:
        answers = await ask_all(self._workers.folder, self._workers.indexes(), asked)
        found = [answer.json() for answer in answers.values() if answer.status == _OK]
        return JSONResponse(merge(found)) if found else no_worker()

    async def _changed(self, asked: WorkerRequest, path: str) -> Response:
        indexes = self._workers.indexes()
        worker, answer = await ask_one(self._workers.folder, indexes, asked)
        poke = _poke(path)
        if answer.status < 300 and poke is not None and not answer.json().get("dry_run"):
            await ask_all(self._workers.folder, [index for index in indexes if index != worker], poke)
        return shown(answer)


def shown(answer: WorkerAnswer) -> Response:
    """A worker's answer as one's own."""
    headers = {} if answer.retry_after is None else {"retry-after": answer.retry_after}
    return Response(answer.body, answer.status, headers, media_type=answer.content_type)


def no_worker() -> JSONResponse:
    """What there is to say while no worker answers."""
    headers = {"retry-after": str(_RETRY_AFTER_S)}
    return refusal(503, "no_worker", "No worker of the router answers.", headers)


def _unknown() -> JSONResponse:
    message = "The worker that took the request does not answer: look whether it was done before you ask again."
    return refusal(503, "worker_lost", message)


async def _forwarded(request: Request) -> WorkerRequest:
    """The request as it came, and who sends it. Of its headers a worker needs nothing but the kind of body."""
    actor, query = actor_of(request), request.scope["query_string"].decode("latin-1")
    target = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    headers = {WHO_HEADER: actor.who, PEER_HEADER: actor.peer}
    content_type = request.headers.get("content-type")
    if content_type is not None:
        headers["content-type"] = content_type
    body = await request.body()
    if request.method in _ASKS_ONLY:
        return WorkerRequest(target, request.method, headers=headers)
    return WorkerRequest(target, request.method, body, headers, CHANGE_TIMEOUT_S)


def _poke(path: str) -> WorkerRequest | None:
    """What the other workers are told of a change. Sessions are in a store that they share."""
    if path == sessions.PATH:
        return None
    return WorkerRequest(REREAD_FILE_PATH if path == RELOAD_PATH else REREAD_PATH, "POST")
