"""What a backend is asked by the router itself, and what a client is told of the answer."""

import gzip
from dataclasses import replace

import pytest

from router_ext.config.sections import KvPinning
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.ports import Call
from router_ext.stream.effects import HeaderEdits, RelayHead
from router_ext.stream.events import RequestHead
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.relays import JSON, LAST, STREAM, TOKEN, begun, failing, relayed, settled, silent, trio

KEY_HEADERS = {"authorization": "Bearer c", "x-api-key": "c", "api-key": "c", "x-goog-api-key": "c"}


async def _call(*backends: Backend, body: bytes = BODY, head_: RequestHead | None = None) -> Call:
    """What the second backend is asked."""
    rig = EngineRig(trio(*backends))
    rig.dispatcher.answer("b", CannedAnswer())
    await relayed(rig, await begun(rig, body, head_))
    (call,) = rig.dispatcher.calls
    return call


# The call


async def test_the_next_backend_gets_the_request_as_envoy_would_send_it() -> None:
    """Without headers of the product, of the first body's form, and of Envoy's first attempt; in their order."""
    sent = {
        "accept": "*/*",
        "x-kronaxis-service": "shop",
        "x-kronaxis-cluster": "evil",
        "content-type": "application/json",
        "content-length": "59",
        "accept-encoding": "gzip",
        "x-request-id": "envoys",
        "x-own": "1",
    }
    call = await _call(head_=head("/v1/chat/completions?a=/v1/", headers=sent))
    kept = (("accept", "*/*"), ("content-type", "application/json"), ("x-own", "1"))
    assert call == Call(backend("b"), "/v1/chat/completions?a=/v1/", kept, BODY, "t-1.2")


async def test_each_attempt_has_an_id_of_its_own() -> None:
    """Below that of the decision; the router's first attempt of a stream is number 1."""
    rig = EngineRig(silent(trio()))
    for name in ("a", "b"):
        rig.dispatcher.answer(name, None)
    rig.dispatcher.answer("c", event_stream(TOKEN, LAST))
    await relayed(rig, await begun(rig, STREAM))
    assert [(call.backend.name, call.request_id) for call in rig.dispatcher.calls] == [
        ("a", "t-1.1"),
        ("b", "t-1.2"),
        ("c", "t-1.3"),
    ]


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        (BackendType.OPENAI, ("authorization", "Bearer k-of-b")),
        (BackendType.GEMINI, ("authorization", "Bearer k-of-b")),
        (BackendType.VLLM, ("authorization", "Bearer k-of-b")),
        (BackendType.ANTHROPIC, ("x-api-key", "k-of-b")),
    ],
)
async def test_a_backend_with_a_key_gets_it_and_none_of_the_callers(engine: BackendType, key: tuple[str, str]) -> None:
    """Nor that of the backend before."""
    second = backend("b", engine=engine, key="k-of-b")
    call = await _call(backend("a", key="k-of-a"), second, head_=head(headers={**KEY_HEADERS, "accept": "*"}))
    assert call.headers == (("accept", "*"), key)


async def test_a_backend_without_a_key_gets_the_callers_credentials() -> None:
    """And never the key of the backend before."""
    call = await _call(backend("a", key="k-of-a"), backend("b"), head_=head(headers=KEY_HEADERS))
    assert call.headers == tuple(KEY_HEADERS.items())


@pytest.mark.parametrize(
    ("engine", "url", "target"),
    [
        (BackendType.VLLM, Endpoint("http", "h", 80), "/v1/chat/completions?x=1"),
        (BackendType.VLLM, Endpoint("http", "h", 80, "/api"), "/api/v1/chat/completions?x=1"),
        (BackendType.GEMINI, Endpoint("https", "h", 443), "/v1beta/openai/chat/completions?x=1"),
    ],
)
async def test_the_path_is_that_of_the_backend(engine: BackendType, url: Endpoint, target: str) -> None:
    """Made from the client's, not from the first backend's."""
    first = backend("a", engine=BackendType.GEMINI, endpoint=Endpoint("https", "g", 443, "/x"))
    second = backend("b", engine=engine, endpoint=url)
    assert (await _call(first, second, head_=head("/v1/chat/completions?x=1"))).target == target


@pytest.mark.parametrize("model", ["m-a", "m-b"])
async def test_the_body_names_the_backends_own_model(model: str) -> None:
    """Every other byte stays; it is made from the client's body, not from the first backend's."""
    body = b'{ "model" : "m-a", "n": 1e2 }'
    call = await _call(backend("a", model="m-first", aliases=("m-a",)), backend("b", model=model), body=body)
    assert call.body == body.replace(b"m-a", model.encode())


@pytest.mark.parametrize("model", ["m-a", "m-b"])
async def test_a_compressed_body_is_sent_as_it_reads(model: str) -> None:
    """Without its coding, whether its model was changed or not."""
    packed = head(content_encoding="gzip", content_type="application/json")
    call = await _call(
        backend("a"), backend("b", model=model), body=gzip.compress(b'{"model":"m-a"}', mtime=0), head_=packed
    )
    assert (call.body, call.headers) == (b'{"model":"%s"}' % model.encode(), (("content-type", "application/json"),))


async def test_a_lora_adapter_is_asked_for_by_its_name() -> None:
    """At whichever backend that has it."""
    call = await _call(backend("a", adapters=("l",)), backend("b", adapters=("l",)), body=b'{"model":"l"}')
    assert call.body == b'{"model":"l"}'


# The head of the answer

STALE = (
    *("content-encoding", "etag", "last-modified", "digest", "content-digest", "repr-digest"),
    *("content-type", "content-length", "content-language", "retry-after"),
    *("www-authenticate", "set-cookie", "x-should-retry", "x-request-id", "x-kronaxis-egress-flags"),
    *("x-ratelimit-limit-requests", "x-ratelimit-limit-tokens"),
    *("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens"),
    *("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"),
)


async def test_the_head_is_the_backends_own_beside_that_of_the_product() -> None:
    """Whatever the first answer said of itself and this one does not is removed; nobody but the router says
    ``x-kronaxis-``.
    """
    rig = EngineRig(trio())
    told = (
        ("content-type", "application/json"),
        ("x-kronaxis-backend", "evil"),
        ("x-kronaxis-kv-pin", "HIT"),
        ("x-kronaxis-egress-flags", "UF"),
        ("x-kronaxis-new", "?"),
        ("x-own", "1"),
        ("etag", '"2"'),
    )
    rig.dispatcher.answer("b", CannedAnswer(200, told))
    (found,) = (await relayed(rig, await begun(rig, head_=head(x_kronaxis_service="shop")))).heads
    shown = (
        ("content-type", "application/json"),
        ("x-own", "1"),
        ("etag", '"2"'),
        ("x-kronaxis-backend", "b"),
        ("x-kronaxis-rule", "default"),
        ("x-kronaxis-attempts", "2"),
    )
    removed = tuple(name for name in STALE if name not in ("content-type", "etag"))
    metadata = {"id": "t-1", "rule": "default", "backend": "b", "service": "shop", "attempts": "2"}
    assert found == RelayHead(200, HeaderEdits(shown, removed), metadata)


async def test_a_head_without_any_header_leaves_none_of_the_first() -> None:
    """As far as they are known to speak of the answer."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer(200, ()))
    (found,) = (await relayed(rig, await begun(rig))).heads
    assert found.edits.remove == STALE


async def test_a_first_attempt_is_not_counted_in_a_header() -> None:
    """It is in the metadata."""
    rig = EngineRig(silent(trio()))
    rig.dispatcher.answer("a", event_stream(TOKEN, LAST))
    (found,) = (await relayed(rig, await begun(rig, STREAM))).heads
    assert found.edits.set == (
        ("content-type", "text/event-stream"),
        ("x-kronaxis-backend", "a"),
        ("x-kronaxis-rule", "default"),
    )
    assert found.metadata["attempts"] == "1"


async def test_an_error_of_the_router_has_the_head_of_the_last_attempt() -> None:
    """The client sees which backend was asked last."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", failing(500))
    rig.dispatcher.answer("c", None)
    found = (await relayed(rig, await begun(rig))).headers
    assert found == {
        "content-type": "application/json",
        "retry-after": "1",
        "x-kronaxis-backend": "c",
        "x-kronaxis-rule": "default",
        "x-kronaxis-attempts": "3",
    }


async def test_the_pin_header_speaks_of_the_backend_that_answers() -> None:
    """A miss where the conversation's own backend failed, a hit from the next turn on."""
    config = trio()
    pinning = replace(config, server=replace(config.server, kv_pinning=KvPinning(enabled=True)))
    rig = EngineRig(pinning)
    body = b'{"model":"m-a","messages":[{"role":"user","content":"%s"}]}' % (b"All work and no play. " * 600)
    first = await begun(rig, body)
    settled(rig, first, status=200)
    rig.dispatcher.answer("b", CannedAnswer(200, JSON))
    second = await begun(rig, body)
    assert rig.telemetry.pins == [("a", False), ("a", True)]
    assert (await relayed(rig, second)).headers["x-kronaxis-kv-pin"] == "MISS"
    settled(rig, second)
    streamed = replace(pinning, defaults=silent(pinning).defaults)
    rig.engine.configure(streamed)
    rig.dispatcher.answer("a", event_stream(TOKEN, LAST))
    third = await begun(rig, body[:-1] + b',"stream":true}')
    assert (await relayed(rig, third)).headers["x-kronaxis-kv-pin"] == "HIT"


async def test_without_pinning_there_is_no_pin_header() -> None:
    """Neither hit nor miss."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer())
    assert "x-kronaxis-kv-pin" not in (await relayed(rig, await begun(rig))).headers
