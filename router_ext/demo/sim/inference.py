"""Answers inference requests: parse, refuse or submit, wait as long as the engine would, write."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from router_ext.demo.sim import chat, completions, embeddings, messages, responses
from router_ext.demo.sim.engine import Sequence
from router_ext.demo.sim.errors import (
    ENGINE_DEAD,
    QUEUE_FULL,
    ApiError,
    invalid_json,
    unknown_model,
    unsupported_media_type,
    wrong_type,
)
from router_ext.demo.sim.event_writer import HEADERS, EventLimit, EventWriter
from router_ext.demo.sim.exchange import DONE, Exchange, Frame, Usage, make_frame
from router_ext.demo.sim.faults import Faults
from router_ext.demo.sim.metrics_page import MetricsPage
from router_ext.demo.sim.runner import EngineRunner
from router_ext.demo.sim.settings import SimSettings

Parser = Callable[[dict[str, Any], Frame], Exchange | ApiError]
PARSERS: dict[str, Parser] = {
    "/v1/chat/completions": chat.parse,
    "/v1/completions": completions.parse,
    "/v1/embeddings": embeddings.parse,
    "/v1/responses": responses.parse,
    "/v1/messages": messages.parse,
}
BATCH_FROM_TPS = 10_000
_JSON_TYPES = ("application/json", "")
_BROKEN = b'{"id":"chatcmpl-'


class Inference:
    """The inference endpoints of one engine."""

    def __init__(self, settings: SimSettings, runner: EngineRunner, page: MetricsPage) -> None:
        self._settings = settings
        self._runner = runner
        self._page = page
        self.served = 0

    async def answer(self, request: web.BaseRequest, raw: bytes, fault: Faults) -> web.StreamResponse:
        """The answer to one request with this body, with the given faults."""
        if fault.hang:
            await asyncio.Event().wait()
        if fault.delay_s:
            await asyncio.sleep(fault.delay_s)
        if fault.status is not None:
            return _fault_status(fault.status, fault.retry_after_s)
        self.served += 1
        exchange = self._parse(request, raw, fault)
        if isinstance(exchange, ApiError):
            return refusal(request.path, exchange)
        if exchange.streamed:
            return await self._stream(request, exchange, fault)
        return await self._plain(request, exchange, fault)

    def _parse(self, request: web.BaseRequest, raw: bytes, fault: Faults) -> Exchange | ApiError:
        if request.content_type not in _JSON_TYPES and "Content-Type" in request.headers:
            return unsupported_media_type()
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return invalid_json(len(raw))
        if not isinstance(body, dict):
            return wrong_type("", "dict")
        named = body.get("model") or ""
        model = self._settings.resolve(named) if isinstance(named, str) else None
        frame = make_frame(self._settings, raw, model or "", counter=self.served, now=time.time(), said=fault.said)
        exchange = PARSERS[request.path](body, frame)
        # As in vLLM the shape of a body is checked before its model.
        if model is None and not (isinstance(exchange, ApiError) and exchange.kind == "Bad Request"):
            return unknown_model(str(named), self._settings.served_names)
        return exchange

    async def _plain(self, request: web.BaseRequest, exchange: Exchange, fault: Faults) -> web.StreamResponse:
        if fault.error_event:
            return refusal(request.path, ENGINE_DEAD)
        sequence = self._runner.submit(exchange.prompt)
        if sequence is None:
            return refusal(request.path, QUEUE_FULL)
        with self._runner.held(sequence, exchange.finish, exchange.generated):
            first_at = await self._first_token(sequence, fault)
            await self._runner.until(first_at + max(0, exchange.steps - 1) / self._settings.decode_tps)
        self._page.whole_s.observe(self._runner.now() - sequence.submitted_at)
        body = _BROKEN if fault.bad_body else exchange.plain(_usage(sequence, exchange))
        return await _cut_in_half(request, body) if fault.cut_body else json_response(200, body)

    async def _stream(self, request: web.BaseRequest, exchange: Exchange, fault: Faults) -> web.StreamResponse:
        sequence = self._runner.submit(exchange.prompt)
        if sequence is None:
            return await _start_and_send(request, [QUEUE_FULL.event(), DONE])
        response = web.StreamResponse(headers=HEADERS)
        writer = EventWriter(response, fault.event_limit, batch=self._settings.decode_tps >= BATCH_FROM_TPS)
        try:
            with self._runner.held(sequence, exchange.finish, exchange.generated):
                await response.prepare(request)
                await self._events(sequence, exchange, fault, writer)
        except EventLimit:
            return await _broken(request, response, fault)
        self._page.whole_s.observe(self._runner.now() - sequence.submitted_at)
        return response

    async def _events(self, sequence: Sequence, exchange: Exchange, fault: Faults, writer: EventWriter) -> None:
        if fault.event_limit == 0:
            raise EventLimit
        first_at = await self._first_token(sequence, fault)
        usage = _usage(sequence, exchange)
        if fault.bad_body:
            await writer.send([b"data: " + _BROKEN + b"\n\n"])
        await writer.send(exchange.opening(usage))
        for index in range(exchange.steps):
            due = first_at + index / self._settings.decode_tps
            if due > self._runner.now():
                await writer.flush()
                await self._runner.until(due)
            await writer.send(exchange.step(index, usage))
        await writer.send(exchange.closing(usage))
        await writer.flush()

    async def _first_token(self, sequence: Sequence, fault: Faults) -> float:
        first_at = await self._runner.prefilled(sequence)
        if fault.first_token_delay_s:
            await asyncio.sleep(fault.first_token_delay_s)
            first_at = self._runner.now()
        self._page.first_token_s.observe(max(0.0, first_at - sequence.submitted_at))
        return first_at


def json_response(status: int, body: bytes, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON body with the headers of every answer."""
    base = {"Content-Type": "application/json", "Server": "uvicorn", "Vary": "Origin"}
    return web.Response(status=status, body=body, headers=base | (headers or {}))


def refusal(path: str, error: ApiError) -> web.Response:
    """A refusal in the shape of the API behind ``path``."""
    anthropic = path == "/v1/messages" and error.kind != "Bad Request"
    return json_response(error.status, error.anthropic_body() if anthropic else error.body())


def _usage(sequence: Sequence, exchange: Exchange) -> Usage:
    return Usage(sequence.prompt.tokens, sequence.cached_tokens, exchange.generated)


def _fault_status(status: int, retry_after_s: int | None) -> web.Response:
    error = ApiError(status, f"Simulated status {status}", "SimulatedFault")
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return json_response(status, error.body(), headers)


async def _start_and_send(request: web.BaseRequest, events: list[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    for item in events:
        await response.write(item)
    return response


async def _broken(request: web.BaseRequest, response: web.StreamResponse, fault: Faults) -> web.StreamResponse:
    if fault.error_event:
        await response.write(ENGINE_DEAD.event())
        await response.write(DONE)
    elif request.transport:
        request.transport.close()
    return response


async def _cut_in_half(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport:
        request.transport.close()
    return response
