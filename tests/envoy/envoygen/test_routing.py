"""Which backend a request reaches, and what of its headers."""

from pathlib import Path

from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, stand

TO_B = Plan({"x-kronaxis-cluster": "backend-b"}, {"x-kronaxis-backend": "b"})
CHAT = "/v1/chat/completions"


async def test_the_processor_chooses_the_cluster(tmp_path: Path) -> None:
    """The routing header that the processor sets decides; its response headers reach the client."""
    a, b = FakeBackend("a"), FakeBackend("b")
    async with stand(tmp_path, a, b, processor=FakeProcessor(TO_B)) as s:
        answer = await s.post(CHAT)
    assert (answer.status, answer.headers["x-kronaxis-backend"]) == (200, "b")
    assert (len(a.seen), len(b.seen)) == (0, 1)


async def test_the_processor_may_set_path_and_credentials(tmp_path: Path) -> None:
    """A provider has a base path and a key of its own; the query is the processor's to keep."""
    b = FakeBackend("b")
    changes = {"x-kronaxis-cluster": "backend-b", ":path": "/v1beta/openai/x?q=1", "authorization": "Bearer own"}
    async with stand(tmp_path, b, processor=FakeProcessor(Plan(changes))) as s:
        assert (await s.post(CHAT, authorization="Bearer client")).status == 200
    assert (b.seen[0][":path"], b.seen[0]["authorization"]) == ("/v1beta/openai/x?q=1", "Bearer own")


async def test_a_client_cannot_route_itself(tmp_path: Path) -> None:
    """The routing header and Envoy's control headers are removed before the processor sees the request."""
    a, b = FakeBackend("a", delay_s=0.1), FakeBackend("b")
    processor = FakeProcessor()
    forged = {"x-kronaxis-cluster": "backend-b", "x-envoy-upstream-rq-timeout-ms": "1", "X-Envoy-Max-Retries": "9"}
    async with stand(tmp_path, a, b, processor=processor, chain=("a",)) as s:
        assert (await s.post(CHAT, **forged)).status == 200
    assert (len(a.seen), len(b.seen)) == (1, 0)
    assert {name.lower() for name in forged} & set(processor.seen_headers[0]) == set()


async def test_a_backend_learns_its_own_name_and_nothing_of_the_product(tmp_path: Path) -> None:
    """Host is the backend's authority, also for an IP address; no product header and no caller's address travel on."""
    b = FakeBackend("b")
    sent = {"x-kronaxis-service": "s", "x-kronaxis-tier": "2"}
    async with stand(tmp_path, b, processor=FakeProcessor(TO_B)) as s:
        assert (await s.post(CHAT, **sent)).status == 200
    assert b.seen[0]["host"] == f"127.0.0.1:{b.port}"
    leaked = [name for name in b.seen[0] if name.startswith(("x-kronaxis-", "x-envoy-")) or name == "x-forwarded-for"]
    assert leaked == []


async def test_a_backend_cannot_forge_product_headers(tmp_path: Path) -> None:
    """What a backend says under the product's names, and Envoy's own headers, do not reach the client."""
    forged = {"x-kronaxis-rule": "forged", "x-kronaxis-cluster": "forged", "server": "uvicorn"}
    b = FakeBackend("b", answer=lambda _: web.Response(text="{}", headers=forged))
    async with stand(tmp_path, b, processor=FakeProcessor(TO_B)) as s:
        answer = await s.post(CHAT)
    assert answer.headers["server"] == "uvicorn"
    received = {name.lower() for name in answer.headers}
    assert received & {"x-kronaxis-rule", "x-kronaxis-cluster", "x-envoy-upstream-service-time"} == set()


async def test_a_path_is_normalised_before_the_processor_sees_it(tmp_path: Path) -> None:
    """Dot segments and doubled slashes are resolved."""
    processor = FakeProcessor(TO_B)
    async with stand(tmp_path, FakeBackend("b"), processor=processor) as s:
        assert await s.get_raw("/v1/x/..//chat/completions") == 200
    assert processor.seen_headers[0][":path"] == CHAT


async def test_a_path_with_an_escaped_slash_is_refused(tmp_path: Path) -> None:
    """``%2F`` means a slash to some servers and not to others: nobody gets to see it."""
    b = FakeBackend("b")
    async with stand(tmp_path, b, processor=FakeProcessor(TO_B)) as s:
        assert await s.get_raw("/v1%2Fchat") == 400
    assert b.seen == []


async def test_a_header_with_an_underscore_is_dropped(tmp_path: Path) -> None:
    """Some servers read ``x_kronaxis_tier`` as ``x-kronaxis-tier``; the request goes on without it."""
    processor = FakeProcessor(TO_B)
    async with stand(tmp_path, FakeBackend("b"), processor=processor) as s:
        assert (await s.post(CHAT, x_kronaxis_tier="9")).status == 200
    assert "x_kronaxis_tier" not in processor.seen_headers[0]


async def test_an_unknown_cluster_is_a_503(tmp_path: Path) -> None:
    """A backend that has just left the configuration is an unavailable one."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "gone"}))
    async with stand(tmp_path, FakeBackend("a"), processor=processor) as s:
        answer = await s.post(CHAT)
    assert (answer.status, answer.error["code"]) == (503, "upstream_unavailable")


async def test_failing_open_skips_a_backend_that_refuses_connections(tmp_path: Path) -> None:
    """A refused connection is tried again on another endpoint of the fail-open cluster."""
    alive, dead = FakeBackend("alive"), FakeBackend("dead")
    async with stand(tmp_path, alive, unstarted=(dead,)) as s:
        statuses = [(await s.post(CHAT)).status for _ in range(8)]
    assert statuses == [200] * 8
