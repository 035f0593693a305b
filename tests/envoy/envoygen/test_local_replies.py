"""The shape of the errors that Envoy answers itself, and which answers keep their own."""

from pathlib import Path

from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, stand

CHAT = "/v1/chat/completions"


async def test_a_backend_that_is_down_is_a_json_503(tmp_path: Path) -> None:
    """The message tells nothing of the upstream."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-down"}))
    async with stand(tmp_path, unstarted=(FakeBackend("down"),), processor=processor) as s:
        answer = await s.post(CHAT)
    assert (answer.status, answer.headers["content-type"]) == (503, "application/json")
    assert answer.error == {
        "message": "No backend could answer.",
        "type": "service_unavailable",
        "param": None,
        "code": "upstream_unavailable",
    }
    assert processor.response_statuses == ["503"]


async def test_the_processors_own_answers_keep_body_and_type(tmp_path: Path) -> None:
    """An immediate response is one of Envoy's local replies too, and is left as it is because it names its type."""
    own, processor = '{"error": {"message": "mine"}}', FakeProcessor()
    async with stand(tmp_path, FakeBackend("a"), processor=processor) as s:
        for status in (400, 404, 408, 413, 500, 502, 503, 504):
            processor.plan = Plan(immediate=(status, "application/problem+json", own))
            answer = await s.post(CHAT)
            assert (answer.status, answer.body) == (status, own.encode())
            assert answer.headers["content-type"] == "application/problem+json"


async def test_an_error_of_a_backend_keeps_its_body(tmp_path: Path) -> None:
    """Only Envoy's own answers are shaped."""
    backend = FakeBackend("a", answer=lambda _: web.Response(status=503, text="loading"))
    async with stand(tmp_path, backend) as s:
        answer = await s.post(CHAT)
    assert (answer.status, answer.body) == (503, b"loading")
