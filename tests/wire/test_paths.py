"""Which requests are answered here, which are routed by their headers alone, and where the stream is left."""

import orjson
import pytest

from tests.fakes.wire_http import Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand
from tests.wire.modes import DUPLEX, PRODUCT, REQUEST_MODES


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_the_model_list_is_answered_here(stand: Stand, modes: ProcessingModes) -> None:
    """Every name that clients may use, whatever the modes; no backend is asked."""
    outcome = stand.run(stand.envoy(modes).exchange(Request(method="GET", target="/v1/models?limit=5")))
    assert outcome.upstream is None
    assert outcome.answered == ["immediate_response"]
    assert outcome.client is not None
    assert outcome.client.status == 200
    document = orjson.loads(outcome.client.body)
    assert [card["id"] for card in document["data"]] == ["served-model", "m", "gemini-pro"]


@pytest.mark.parametrize(("name", "status"), [("m", 200), ("unknown", 404)])
def test_one_model_is_answered_here(stand: Stand, name: str, status: int) -> None:
    """A card, or the error of an unknown name."""
    outcome = stand.run(stand.envoy(PRODUCT).exchange(Request(method="GET", target=f"/v1/models/{name}")))
    assert outcome.upstream is None
    assert outcome.client is not None
    assert outcome.client.status == status


PASSED = [
    Request(method="GET", target="/health"),
    Request((b"--part", b"--\r\n"), target="/v1/files?purpose=batch"),
    Request((b"not JSON",), target="/"),
    Request(method="DELETE", target="/v1/sessions/s-1"),
    Request(method="OPTIONS", headers=(("origin", "https://app.test"), ("access-control-request-method", "POST"))),
    Request(method="GET"),
    Request(method="HEAD"),
    Request(method="HEAD", target="/v1/models"),
    Request((b"{",), method="PUT"),
]


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
@pytest.mark.parametrize("request_", PASSED, ids=lambda request: f"{request.method} {request.target}")
def test_what_is_no_inference_passes_untouched(stand: Stand, modes: ProcessingModes, request_: Request) -> None:
    """It goes to the first backend of the fallback chain with method, path and body as they came."""
    outcome = stand.run(stand.envoy(modes).exchange(request_, Response((b"an", b"swer"))))
    assert outcome.upstream is not None
    seen = outcome.upstream
    assert (seen.method, seen.target, seen.body) == (request_.method, request_.target, request_.body)
    assert seen.cluster == "backend-alpha"
    assert outcome.client is not None
    assert outcome.client.body == b"answer"
    assert "x-envoy-upstream-rq-timeout-ms" not in seen.headers


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
@pytest.mark.parametrize("request_", PASSED, ids=lambda request: f"{request.method} {request.target}")
def test_the_stream_is_left_as_soon_as_it_is_routed(stand: Stand, modes: ProcessingModes, request_: Request) -> None:
    """One message is the whole cost, but for full duplex, where leaving would cut a body."""
    outcome = stand.run(stand.envoy(modes).exchange(request_))
    if DUPLEX not in (modes.request, modes.response):
        assert outcome.answered == ["request_headers"]
        assert outcome.left


def test_product_headers_of_a_client_go_no_further(stand: Stand) -> None:
    """Also on paths that routing knows nothing about; the caller's own credentials stay."""
    headers = (("x-kronaxis-backend", "mine"), ("x-kronaxis-cluster", "backend-gamma"), ("authorization", "Bearer c"))
    outcome = stand.run(stand.envoy(PRODUCT).exchange(Request(method="GET", target="/health", headers=headers)))
    assert outcome.upstream is not None
    assert "x-kronaxis-backend" not in outcome.upstream.headers
    assert outcome.upstream.cluster == "backend-alpha"
    assert outcome.upstream.headers.get("authorization") == "Bearer c"


def test_a_path_keeps_every_byte(stand: Stand) -> None:
    """Envoy passes bytes above 127 in a path; a rewrite below another base keeps them."""
    request = Request((b'{"model":"gemini-pro"}',), target="/v1/chat/completions?q=\xe9\xff%20")
    outcome = stand.run(stand.envoy(PRODUCT).exchange(request))
    assert outcome.upstream is not None
    assert outcome.upstream.target == "/v1beta/openai/chat/completions?q=\xe9\xff%20"


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_unknown_paths_without_a_backend_are_refused(stand: Stand, modes: ProcessingModes) -> None:
    """503 with ``Retry-After``, as for inference."""
    with stand.all_down():
        outcome = stand.run(stand.envoy(modes).exchange(Request(method="GET", target="/health")))
    assert outcome.client is not None
    assert outcome.client.status == 503
    assert outcome.client.headers.get("retry-after") == "5"
