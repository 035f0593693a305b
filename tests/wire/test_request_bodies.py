"""Requests in every pair of body modes: the upstream gets the client's bytes, with the model's name in its place."""

import pytest

from tests.fakes.envoy_client import Act
from tests.fakes.wire_http import CHAT, Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand
from tests.wire.modes import ALL_MODES, DUPLEX, NONE, PARTIAL, PRODUCT, REQUEST_MODES, STREAMED, shows_body

RENAMED = b'{"model":"m","messages":[]}'
RENAMED_UPSTREAM = b'{"model":"served-model","messages":[]}'
UNCHANGED = b'{ "messages":[], "model": "served-model" }'

TRAILERS = (("x-checksum", "abc"),)


def halves(body: bytes, at: int) -> tuple[bytes, ...]:
    """A body in two chunks."""
    return (body[:at], body[at:])


def single_bytes(body: bytes) -> tuple[bytes, ...]:
    """A body in chunks of one byte."""
    return tuple(body[i : i + 1] for i in range(len(body)))


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
@pytest.mark.parametrize(
    ("body", "rewritten"), [(RENAMED, RENAMED_UPSTREAM), (UNCHANGED, UNCHANGED)], ids=["renamed", "unchanged"]
)
def test_only_the_model_name_changes_wherever_the_body_is_cut(
    stand: Stand, modes: ProcessingModes, body: bytes, rewritten: bytes
) -> None:
    """Two chunks, cut at every byte offset. Where the mode does not show the body, it stays as it is."""
    expected = rewritten if shows_body(modes) else body

    async def cut_everywhere() -> None:
        for at in range(len(body) + 1):
            outcome = await stand.envoy(modes).exchange(Request(halves(body, at)))
            assert outcome.upstream is not None
            assert outcome.upstream.body == expected, at
            assert outcome.upstream.cluster == "backend-alpha"

    stand.run(cut_everywhere())
    assert stand.in_flight == len(body) + 1
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_chunks_of_one_byte_make_the_same_request(stand: Stand, modes: ProcessingModes) -> None:
    """The finest chunking there is, on the way in and on the way back."""
    answer = b'{"choices": []}'
    request, response = Request(single_bytes(RENAMED)), Response(single_bytes(answer))
    outcome = stand.run(stand.envoy(modes).exchange(request, response))
    assert outcome.upstream is not None
    assert outcome.upstream.body == (RENAMED_UPSTREAM if shows_body(modes) else RENAMED)
    assert outcome.client is not None
    assert outcome.client.body == answer


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_content_length_is_right_or_absent(stand: Stand, modes: ProcessingModes) -> None:
    """A new body comes with its own length where Envoy keeps the header; streamed bodies go without."""
    outcome = stand.run(stand.envoy(modes).exchange(Request((RENAMED,))))
    assert outcome.upstream is not None
    expected = {NONE: "27", STREAMED: None, DUPLEX: None}.get(modes.request, "38")
    assert outcome.upstream.headers.get("content-length") == expected


@pytest.mark.parametrize("modes", [modes for modes in ALL_MODES if not modes.before_headers], ids=str)
def test_trailers_end_a_request_as_well(stand: Stand, modes: ProcessingModes) -> None:
    """With trailers no body message says that it is the last; they are passed on in every mode.

    With ``send_body_without_waiting_for_header_response`` Envoy holds trailers back until the headers are answered.
    """
    request = Request(halves(RENAMED, 10), trailers=TRAILERS)
    outcome = stand.run(stand.envoy(modes).exchange(request, Response((b"{", b"}"), trailers=TRAILERS)))
    assert outcome.upstream is not None
    assert outcome.upstream.trailers == TRAILERS
    expected = RENAMED if not shows_body(modes) or modes.request is PARTIAL else RENAMED_UPSTREAM
    assert outcome.upstream.body == expected
    assert "request_trailers" in outcome.answered


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
@pytest.mark.parametrize("target", [CHAT, "/v1/files"])
def test_a_repeated_last_chunk_changes_nothing(stand: Stand, modes: ProcessingModes, target: str) -> None:
    """Some versions of Envoy show the last chunk twice: one decision, and no byte doubled or lost."""
    request = Request(halves(RENAMED, 10), target=target)
    outcome = stand.run(stand.envoy(modes).exchange(request, act=Act(repeats_last_chunk=True)))
    assert outcome.upstream is not None
    rewritten = target == CHAT and shows_body(modes)
    assert outcome.upstream.body == (RENAMED_UPSTREAM if rewritten else RENAMED)
    assert len(stand.kept.decisions) == 1


def test_a_partly_buffered_body_is_routed_by_its_headers(stand: Stand) -> None:
    """A body above Envoy's buffer is shown in part: it cannot be read, and goes on as it came."""
    modes = ProcessingModes(PARTIAL, STREAMED)
    outcome = stand.run(stand.envoy(modes).exchange(Request((RENAMED,)), act=Act(buffer=20)))
    assert outcome.upstream is not None
    assert outcome.upstream.body == RENAMED
    assert outcome.upstream.cluster == "backend-alpha"
    assert stand.kept.blind_decisions == 1


def test_a_body_that_fits_the_partial_buffer_is_read(stand: Stand) -> None:
    """The other side of the boundary: a buffer of exactly the body's size shows all of it."""
    modes = ProcessingModes(PARTIAL, STREAMED)
    outcome = stand.run(stand.envoy(modes).exchange(Request((RENAMED,)), act=Act(buffer=27)))
    assert outcome.upstream is not None
    assert outcome.upstream.body == RENAMED_UPSTREAM
    assert stand.kept.blind_decisions == 0


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_a_mode_without_the_body_is_counted(stand: Stand, modes: ProcessingModes) -> None:
    """Routing by headers alone is a wrong configuration of Envoy: the operator sees it in a counter."""
    stand.run(stand.envoy(modes).exchange(Request((RENAMED,))))
    assert stand.kept.blind_decisions == (0 if shows_body(modes) else 1)


def test_the_backend_gets_its_own_path_and_key(stand: Stand) -> None:
    """The path below the provider's base, the backend's key, none of the caller's credentials or product headers."""
    headers = (
        ("content-type", "application/json"),
        ("authorization", "Bearer caller"),
        ("x-api-key", "caller"),
        ("x-kronaxis-service", "billing"),
        ("accept-encoding", "gzip"),
        ("x-other", "caf\xe9"),
    )
    request = Request((b'{"model":"gemini-pro"}',), target="/v1/chat/completions?trace=1", headers=headers)
    outcome = stand.run(stand.envoy(PRODUCT).exchange(request))
    assert outcome.upstream is not None
    seen = outcome.upstream.headers
    assert outcome.upstream.cluster == "backend-gamma"
    assert outcome.upstream.target == "/v1beta/openai/chat/completions?trace=1"
    assert seen.get("authorization") == "Bearer gamma-key"
    assert [name for name in ("x-api-key", "x-kronaxis-service", "accept-encoding") if name in seen] == []
    assert seen.get("x-other") == "caf\xe9"
    assert outcome.upstream.body == b'{"model":"gemini-pro"}'


def test_the_decision_travels_in_dynamic_metadata(stand: Stand) -> None:
    """Envoy's log and access log entry learn the decision's short form."""
    request = Request((RENAMED,), headers=(("x-kronaxis-service", "billing"),))
    outcome = stand.run(stand.envoy(PRODUCT).exchange(request))
    decision = stand.kept.decisions[0]
    expected = {"id": decision.id, "rule": "default", "backend": "alpha", "service": "billing"}
    assert outcome.metadata == {"router_ext": expected}


def test_the_timeout_of_a_plain_request_is_set(stand: Stand) -> None:
    """120 seconds by default for an answer that is not streamed; a stream has no timeout of its own."""
    plain = stand.run(stand.envoy(PRODUCT).exchange(Request((RENAMED,))))
    streamed = stand.run(stand.envoy(PRODUCT).exchange(Request((b'{"model":"m","stream":true}',))))
    assert plain.upstream is not None
    assert streamed.upstream is not None
    assert plain.upstream.headers.get("x-envoy-upstream-rq-timeout-ms") == "120000"
    assert "x-envoy-upstream-rq-timeout-ms" not in streamed.upstream.headers


def test_tcp_serves_like_a_unix_socket(stand_on_tcp: Stand) -> None:
    """The other kind of address that a configuration may give."""
    outcome = stand_on_tcp.run(stand_on_tcp.envoy(PRODUCT).exchange(Request((RENAMED,))))
    assert outcome.upstream is not None
    assert outcome.upstream.body == RENAMED_UPSTREAM
