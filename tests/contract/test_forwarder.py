"""The admin API of several workers: who is asked, and what the others are told."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from router_ext.admin.access import Access, ApiGate
from router_ext.admin.operations import elsewhere
from router_ext.admin.routes import changing_routes
from router_ext.model.secret import Secret
from router_ext.workers.forwarder import Forwarder, Workers
from router_ext.workers.place import WorkerFolder
from tests.envoy.rig import short_directory

TOKEN = "t0ken"


@dataclass
class FakeWorker:
    """Answers on a worker's socket, and remembers what it was asked."""

    status: int = 200
    body: dict[str, Any] = field(default_factory=lambda: {"worker": True})
    dies: bool = False
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One answer, or the end of the connection."""
        self.asked.append((request.method, request.raw_path, await request.read()))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.dies and request.transport is not None:
            request.transport.abort()
        return web.json_response(self.body, status=self.status)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the sockets are."""
    with short_directory() as place:
        yield place


async def serve(stack: AsyncExitStack, folder: Path, *workers: FakeWorker | None) -> "Client":
    """A client of the supervisor's application; None is a worker that does not run."""
    place = WorkerFolder(folder)
    for index, worker in enumerate(workers):
        if worker is not None:
            answers = web.Application()
            answers.router.add_route("*", "/{path:.*}", worker.answer)
            runner = web.AppRunner(answers)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.UnixSite(runner, str(place.admin_socket(index))).start()
    routes = changing_routes(elsewhere, elsewhere)
    known = Workers(place, lambda: range(len(workers)))
    forwarded = [route for router in routes for route in router.routes]
    app = FastAPI(
        middleware=[
            Middleware(ApiGate, access=Access(Secret(TOKEN), exposed=True)),
            Middleware(Forwarder, workers=known, routes=forwarded),
        ]
    )
    return Client(TestClient(app, base_url="http://router", client=("10.9.8.7", 1)))


@dataclass(frozen=True)
class Answer:
    """What the supervisor said."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """Of an error."""
        return str(self.body["error"]["code"])


class Client:
    """Asks from a thread of its own, with the token."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    async def ask(
        self, method: str, target: str, *, json: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One answer."""
        sent = {"authorization": f"Bearer {TOKEN}", **(headers or {})}
        answer = await asyncio.to_thread(self._client.request, method, target, json=json, headers=sent)
        return Answer(answer.status_code, answer.json(), answer.headers)


REREAD = ("POST", "/api/config/changes", b"")


async def test_a_change_is_made_by_one_worker_and_told_to_the_others(folder: Path) -> None:
    """As it came, with its spelling; the token stays here."""
    workers = FakeWorker(status=201), FakeWorker(), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        answer = await client.ask("PUT", "/api/rules/a%2Fb%20c?dry_run=false", json={"backends": ["x"]})
    assert (answer.status, answer.body) == (201, {"worker": True})
    assert workers[0].asked == [("PUT", "/api/rules/a%2Fb%20c?dry_run=false", b'{"backends":["x"]}')]
    assert workers[1].asked == workers[2].asked == [REREAD]
    assert "authorization" not in workers[0].headers[0]
    assert workers[0].headers[0]["x-kronaxis-admin-peer"] == "10.9.8.7"
    assert workers[0].headers[0]["x-kronaxis-admin-who"].startswith("token:")


async def test_nobody_says_who_they_are_by_a_header(folder: Path) -> None:
    """What a worker believes comes from the supervisor alone."""
    worker = FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, worker)
        await client.ask(
            "POST", "/api/config/reload", headers={"x-kronaxis-admin-who": "root", "x-kronaxis-admin-peer": "1"}
        )
    assert worker.headers[0]["x-kronaxis-admin-peer"] == "10.9.8.7"
    assert worker.headers[0]["x-kronaxis-admin-who"].startswith("token:")


async def test_a_refused_change_is_told_to_nobody(folder: Path) -> None:
    """There is nothing to take over."""
    workers = FakeWorker(status=422), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        assert (await client.ask("DELETE", "/api/rules/x")).status == 422
    assert workers[1].asked == []


async def test_every_worker_reads_the_file_when_one_is_told_to(folder: Path) -> None:
    """Each has the file itself. One worker was asked, and the audit has one line of it."""
    workers = FakeWorker(), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        await client.ask("POST", "/api/config/reload")
    assert workers[0].asked == [("POST", "/api/config/reload", b"")]
    assert workers[1].asked == [("POST", "/api/config/file", b"")]


@pytest.mark.parametrize("target", ["/api/config/reload", "/api/rules/x"])
async def test_a_dry_run_is_told_to_nobody(folder: Path, target: str) -> None:
    """Nothing has changed."""
    workers = FakeWorker(body={"changed": True, "dry_run": True}), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        await client.ask("POST" if "config" in target else "DELETE", f"{target}?dry_run=true")
    assert workers[1].asked == []


async def test_a_session_is_begun_by_one_worker(folder: Path) -> None:
    """Their store is one."""
    workers = FakeWorker(status=201), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        await client.ask("POST", "/api/sessions", json={"messages": []})
    assert ([item[1] for item in workers[0].asked], workers[1].asked) == (["/api/sessions"], [])


async def test_a_worker_that_does_not_run_is_passed_over(folder: Path) -> None:
    """Nothing has reached it."""
    workers = None, FakeWorker(status=201)
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        assert (await client.ask("POST", "/api/backends/x/drain")).status == 201


async def test_a_change_is_not_tried_again_where_it_may_have_been_made(folder: Path) -> None:
    """The answer says to look."""
    workers = FakeWorker(dies=True), FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        answer = await client.ask("POST", "/api/backends/x/drain")
    assert (answer.status, answer.code) == (503, "worker_lost")
    assert workers[1].asked == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/rules"), ("GET", "/api/backends"), ("DELETE", "/api/rules/x")]
)
async def test_without_a_worker_the_answer_says_when_to_come_again(folder: Path, method: str, path: str) -> None:
    """Nobody knows anything then."""
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, None, None)
        answer = await client.ask(method, path)
    assert (answer.status, answer.code) == (503, "no_worker")
    assert answer.headers["retry-after"] == "2"


async def test_what_any_worker_knows_is_asked_of_the_next_one_too(folder: Path) -> None:
    """To ask twice does no harm."""
    workers = FakeWorker(dies=True), FakeWorker(body={"rules": []})
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, *workers)
        assert (await client.ask("GET", "/api/rules")).body == {"rules": []}


@pytest.mark.parametrize("path", ["/api/config/changes", "/api/nothing", "/health", "/api/rules/../config/changes"])
async def test_other_paths_reach_no_worker(folder: Path, path: str) -> None:
    """Least of all that by which workers are told of changes."""
    worker = FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, worker)
        assert (await client.ask("POST", path)).status in (404, 405)
    assert worker.asked == []


async def test_without_the_token_nothing_reaches_a_worker(folder: Path) -> None:
    """The gate stands in front."""
    worker = FakeWorker()
    async with AsyncExitStack() as stack:
        client = await serve(stack, folder, worker)
        answers = await asyncio.gather(
            client.ask("GET", "/api/rules", headers={"authorization": "Bearer x"}),
            client.ask("DELETE", "/api/rules/x", headers={"authorization": ""}),
        )
    assert [answer.status for answer in answers] == [401, 401]
    assert worker.asked == []
