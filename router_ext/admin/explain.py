"""Decisions in the admin API: those that were made, and what would become of a request that nobody sends."""

import json
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from router_ext.admin.decision_models import DecisionList, ShownExplanation
from router_ext.admin.refusal import refusal
from router_ext.decisions.events import message_of_explanation
from router_ext.decisions.record import json_of_message
from router_ext.engine.engine import Engine
from router_ext.engine.explaining import request_head
from router_ext.model.decision_filter import DecisionFilter

MAX_TEXT = 256
"""Longest text that decisions are searched for."""

Json = dict[str, Any]


class ExplainBody(BaseModel):
    """A POST as a client would send it."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$", max_length=8192)] = "/v1/chat/completions"
    headers: Annotated[
        dict[str, Annotated[str, Field(max_length=131_072)]],
        Field(max_length=200, description="Names in any case, each once."),
    ] = {}
    body: Annotated[dict[str, Any] | str, Field(description="The request's body: a JSON object, or its text.")]

    def raw(self) -> bytes:
        """The body's bytes. An object is written anew, so its size may be another than the client's."""
        if isinstance(self.body, str):
            return self.body.encode("utf-8", "surrogatepass")
        return json.dumps(self.body, separators=(",", ":")).encode()


class BadRequestError(Exception):
    """What no HTTP request can be, with a sentence that quotes nothing."""


class DecisionSource(Protocol):
    """Where decisions come from: this process, or the workers that it watches."""

    async def recent(self, limit: int, wanted: DecisionFilter) -> list[Json]:
        """Up to ``limit`` decisions that are ``wanted``, newest first, as ``router_ext.v1.Decision`` in JSON."""
        ...


class ExplainSource(Protocol):
    """Who explains."""

    async def explain(self, asked: ExplainBody) -> Json:
        """``router_ext.v1.ExplainResponse`` in JSON. Raises BadRequestError."""
        ...


class EngineExplains:
    """Implements ``ExplainSource`` by this process's engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def explain(self, asked: ExplainBody) -> Json:
        """See ``ExplainSource``."""
        try:
            head = request_head(asked.path, asked.headers)
        except ValueError as error:
            raise BadRequestError(str(error)) from None
        return json_of_message(message_of_explanation(await self._engine.explain(head, asked.raw())))


Text = Annotated[str, Query(max_length=MAX_TEXT)]


def decision_routes(source: DecisionSource) -> APIRouter:
    """``GET /api/decisions``."""
    router = APIRouter(prefix="/api", tags=["decisions"])

    @router.get("/decisions", response_model=DecisionList)
    async def decisions(
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
        request_id: Text = "",
        backend: Text = "",
        rule: Text = "",
        service: Text = "",
    ) -> JSONResponse:
        """The last decisions, newest first, each with every candidate, filter and score. Holds no prompt.

        An empty parameter asks for all; ``request_id`` is a decision's id or a request's ``x-request-id``.
        """
        wanted = DecisionFilter(service, rule, backend, request_id)
        return JSONResponse({"decisions": await source.recent(limit, wanted)})

    return router


def explain_routes(source: ExplainSource) -> APIRouter:
    """``POST /api/explain``."""
    router = APIRouter(prefix="/api", tags=["decisions"])

    @router.post(
        "/explain",
        response_model=ShownExplanation,
        responses={400: {"description": "No HTTP request can have such a path or such headers."}},
    )
    async def explain(asked: ExplainBody) -> JSONResponse:
        """What would become of a request: the decision with every candidate, filter, score and pin. Nothing is sent."""
        try:
            return JSONResponse(await source.explain(asked))
        except BadRequestError as error:
            return refusal(400, "invalid_request", str(error))

    return router
