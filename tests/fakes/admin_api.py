"""A router's admin API, as far as ``router-ext top`` reads it: figures that grow with every reading."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

TOKEN = "t0ken"


def backend(name: str, **more: Any) -> dict[str, Any]:
    """A backend as ``GET /api/backends`` shows it."""
    shown = {
        "name": name,
        "type": "vllm",
        "url": "http://h:8000",
        "model": "m",
        "aliases": [],
        "lora_adapters": [],
        "capabilities": [],
        "max_concurrent": 8,
        "cost_input_1m": None,
        "cost_cached_input_1m": None,
        "cost_output_1m": None,
        "api_key": None,
        "health_endpoint": "/health",
        "circuit_breaker": None,
        "origin": "file",
        "health": "healthy",
        "circuit_open": False,
        "drained": False,
        "paused_seconds": 0.0,
        "active_requests": 2,
        "load_elsewhere": 0.0,
        "ttft_p50_ms": 41.5,
        "ttft_p95_ms": 130.0,
    }
    return {**shown, **more}


def figures(**more: Any) -> dict[str, Any]:
    """A backend as ``GET /api/stats`` counts it."""
    counted = {
        "requests": 100,
        "errors": 2,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "pin_hits": 30,
        "pin_misses": 10,
        "active_requests": 2,
        "ttft_p50_ms": 41.5,
        "ttft_p95_ms": 130.0,
    }
    return {**counted, **more}


def stats(**more: Any) -> dict[str, Any]:
    """``GET /api/stats``."""
    counted = {
        "uptime_seconds": 3661.0,
        "requests": 100,
        "errors": 2,
        "refusals": 1,
        "in_flight": 2,
        "backends": {"a": figures()},
        "rules": {"default": 100},
        "refusals_by_reason": {"no_backend": 1},
        "pins": {"entries": 7, "hits": 30, "misses": 10, "hit_ratio": 0.75},
        "sessions": {"active": 3, "created": 3, "continued": 9, "tokens_saved": 100},
        "cost_today_usd": {"chat": 1.5, "other": 0.25},
        "shadows": {},
        "quality_gate": {},
    }
    return {**counted, **more}


def queue(name: str, **more: Any) -> dict[str, Any]:
    """A backend as ``GET /api/queue`` shows it."""
    shown = {
        "backend": name,
        "in_flight": 2,
        "max_concurrent": 8,
        "engine": {"running": 2.0, "waiting": 5.0, "age_seconds": 0.5},
        "load": 7.0,
        "prefill_queued": 0.0,
        "expected_wait_seconds": None,
        "drained": False,
        "paused_seconds": 0.0,
    }
    return {**shown, **more}


def budget(service: str, **more: Any) -> dict[str, Any]:
    """A service as ``GET /api/budgets`` shows it."""
    shown = {
        "service": service,
        "limit_usd": 10.0,
        "action": "reject",
        "downgrade_target": None,
        "spent_today_usd": 1.0,
        "reserved_usd": 0.0,
        "resets_in_s": 3600,
    }
    return {**shown, **more}


def costs(**by_backend: float) -> dict[str, Any]:
    """``GET /api/costs``."""
    return {
        "period": "today",
        "from": "2026-11-30",
        "to": "2026-11-30",
        "complete": True,
        "total_usd": sum(by_backend.values()),
        "rows": [],
        "by_service": {},
        "by_backend": by_backend,
        "by_kind": {},
    }


@dataclass
class FakeAdminApi:
    """On a port of 127.0.0.1 while entered. Each reading of the figures finds ``growth`` more requests.

    ``token`` None: it asks for none. ``broken`` maps paths to a status that they answer with.
    """

    token: str | None = None
    growth: int = 10
    broken: dict[str, int] = field(default_factory=dict)
    url: str = ""
    asked: list[str] = field(default_factory=list)
    _requests: int = 100

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", int(self.url.rpartition(":")[2] or 0))
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
            return web.json_response({"error": {}}, status=401)
        if request.path in self.broken:
            return web.json_response({"error": {}}, status=self.broken[request.path])
        body = self._body(request.path)
        return web.json_response(body) if body is not None else web.Response(status=404)

    def _body(self, path: str) -> dict[str, Any] | None:
        if path == "/api/stats":
            self._requests += self.growth
            return stats(requests=self._requests, backends={"a": figures(requests=self._requests)})
        return {
            "/api/backends": {"backends": [backend("a"), backend("b", health="down", circuit_open=True)]},
            "/api/queue": {"queues": [queue("a"), queue("b", engine=None)]},
            "/api/budgets": {"budgets": [budget("chat"), budget("batch", spent_today_usd=9.0)]},
            "/api/costs": costs(a=1.75),
        }.get(path)
