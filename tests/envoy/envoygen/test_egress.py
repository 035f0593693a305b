"""The loopback listener for the calls that router_ext makes itself."""

import time
from pathlib import Path

import pytest
from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, stand

CHAT = "/v1/chat/completions"


async def test_the_header_names_the_cluster(tmp_path: Path) -> None:
    """The call reaches the backend under its own name, without the product's headers and without the processor."""
    a, b = FakeBackend("a"), FakeBackend("b")
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-a"}))
    async with stand(tmp_path, a, b, processor=processor) as s:
        answer = await s.post(CHAT, at=s.egress, **{"x-kronaxis-cluster": "backend-b", "authorization": "Bearer k"})
    assert (answer.status, answer.headers["x-kronaxis-egress-flags"]) == (200, "-")
    assert (len(a.seen), len(b.seen), len(processor.seen_headers)) == (0, 1, 0)
    assert (b.seen[0]["host"], b.seen[0]["authorization"]) == (f"127.0.0.1:{b.port}", "Bearer k")
    assert [name for name in b.seen[0] if name.startswith(("x-kronaxis-", "x-envoy-", "x-forwarded-for"))] == []


async def test_without_the_header_there_is_nothing(tmp_path: Path) -> None:
    """No default route: 404."""
    async with stand(tmp_path, FakeBackend("a")) as s:
        answer = await s.post(CHAT, at=s.egress)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


@pytest.mark.parametrize(("cluster", "flags"), [("backend-down", "UF"), ("backend-gone", "NC")])
async def test_a_failure_of_envoys_own_is_told_apart_by_its_flags(cluster: str, flags: str, tmp_path: Path) -> None:
    """UF: the connection was refused (no retries). NC: there is no such cluster."""
    async with stand(tmp_path, unstarted=(FakeBackend("down"),)) as s:
        answer = await s.post(CHAT, at=s.egress, **{"x-kronaxis-cluster": cluster})
    assert (answer.status, answer.headers["x-kronaxis-egress-flags"]) == (503, flags)


async def test_an_error_of_the_backend_has_no_flags(tmp_path: Path) -> None:
    """A 503 that the backend itself said."""
    backend = FakeBackend("a", answer=lambda _: web.Response(status=503, text="loading"))
    async with stand(tmp_path, backend) as s:
        answer = await s.post(CHAT, at=s.egress, **{"x-kronaxis-cluster": "backend-a"})
    assert (answer.status, answer.body, answer.headers["x-kronaxis-egress-flags"]) == (503, b"loading", "-")


async def test_the_timeout_header_bounds_a_call(tmp_path: Path) -> None:
    """``x-envoy-upstream-rq-timeout-ms`` counts, because the listener trusts loopback callers."""
    headers = {"x-kronaxis-cluster": "backend-a", "x-envoy-upstream-rq-timeout-ms": "300"}
    async with stand(tmp_path, FakeBackend("a", delay_s=5)) as s:
        started = time.monotonic()
        answer = await s.post(CHAT, at=s.egress, **headers)
        took_s = time.monotonic() - started
    assert (answer.status, answer.headers["x-kronaxis-egress-flags"]) == (504, "UT")
    assert 0.25 < took_s < 1.5
