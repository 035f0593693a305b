"""Requests that the router refuses: one immediate response in the shape of OpenAI's errors, and nothing after it."""

import gzip
from dataclasses import dataclass

import orjson
import pytest

from tests.fakes.wire_http import Client, Pairs, Request
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand, small_config
from tests.wire.modes import REQUEST_MODES, SEEING_MODES

JSON = ("content-type", "application/json")
DEEP = b'{"model":"m","messages":' + b"[" * 1100 + b"]" * 1100 + b"}"


@dataclass(frozen=True, slots=True)
class Bad:
    """A body with its headers, and the refusal that it meets."""

    body: bytes
    status: int
    code: str
    param: str | None = None
    headers: Pairs = ()


BAD_BODIES = {
    "not JSON": Bad(b'{"model": "m",', 400, "invalid_json"),
    "not UTF-8": Bad(b'{"model": "\xff"}', 400, "invalid_json"),
    "not an object": Bad(b'["model"]', 400, "invalid_json"),
    "empty": Bad(b"", 400, "invalid_json"),
    "model twice": Bad(b'{"model":"m","model":"served-model"}', 400, "duplicate_field", "model"),
    "model a number": Bad(b'{"model":4}', 400, "invalid_model", "model"),
    "too deep": Bad(DEEP, 400, "invalid_json"),
    "unknown encoding": Bad(b"{}", 415, "unsupported_content_encoding", None, (("content-encoding", "br"),)),
    "damaged gzip": Bad(
        gzip.compress(b"{}", mtime=0)[:-3], 400, "bad_content_encoding", None, (("content-encoding", "gzip"),)
    ),
}

BAD_HEADERS = {
    "tier": Bad(b"{}", 400, "bad_header", "x-kronaxis-tier", (("x-kronaxis-tier", "gold"),)),
    "service": Bad(b"{}", 400, "bad_header", "x-kronaxis-service", (("x-kronaxis-service", "caf\xe9"),)),
    "session": Bad(b"{}", 400, "sessions_disabled", None, (("x-kronaxis-session-id", "s-1"),)),
}


def error_of(client: Client | None) -> dict[str, object]:
    """The error object of an answer, whose shape is checked."""
    assert client is not None
    assert client.immediate
    assert client.headers.get("content-type") == "application/json"
    document = orjson.loads(client.body)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["message", "type", "param", "code"]
    error: dict[str, object] = document["error"]
    return error


def refusal(stand: Stand, modes: ProcessingModes, bad: Bad, chunk: int = 7) -> Client | None:
    """The answer to a bad request whose body comes in chunks of some bytes."""
    chunks = tuple(bad.body[i : i + chunk] for i in range(0, len(bad.body), chunk)) or (b"",)
    outcome = stand.run(stand.envoy(modes).exchange(Request(chunks, headers=(JSON, *bad.headers))))
    assert outcome.upstream is None
    assert outcome.answered[-1] == "immediate_response"
    return outcome.client


@pytest.mark.parametrize("modes", SEEING_MODES, ids=str)
@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_in_every_mode_that_shows_it(stand: Stand, modes: ProcessingModes, name: str) -> None:
    """Status, code and field by the kind of mistake; the client is told not to come back."""
    bad = BAD_BODIES[name]
    client = refusal(stand, modes, bad)
    error = error_of(client)
    assert client is not None
    assert (client.status, error["code"], error["param"]) == (bad.status, bad.code, bad.param)
    assert error["type"] == "invalid_request_error"
    assert "retry-after" not in client.headers
    assert stand.in_flight == 0
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_bad_header_is_refused_in_every_mode(stand: Stand, modes: ProcessingModes, name: str) -> None:
    """Headers are always shown."""
    bad = BAD_HEADERS[name]
    client = refusal(stand, modes, bad)
    error = error_of(client)
    assert client is not None
    assert (client.status, error["code"], error["param"]) == (bad.status, bad.code, bad.param)


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_without_a_backend_the_client_is_told_when_to_come_back(stand: Stand, modes: ProcessingModes) -> None:
    """503 with ``Retry-After`` in seconds."""
    with stand.all_down():
        client = refusal(stand, modes, Bad(b'{"model":"m"}', 503, "no_backend"))
    error = error_of(client)
    assert client is not None
    assert (client.status, error["code"], error["type"]) == (503, "no_backend", "service_unavailable")
    assert client.headers.get("retry-after") == "5"


@pytest.mark.parametrize("modes", REQUEST_MODES, ids=str)
def test_a_post_without_a_body_is_refused_in_every_mode(stand: Stand, modes: ProcessingModes) -> None:
    """The headers that end a request are all there is of it: an empty body is no JSON."""
    outcome = stand.run(stand.envoy(modes).exchange(Request()))
    assert outcome.answered == ["immediate_response"]
    assert error_of(outcome.client)["code"] == "invalid_json"


@pytest.mark.parametrize("modes", SEEING_MODES, ids=str)
def test_the_limit_on_bodies_is_exact(stand: Stand, modes: ProcessingModes) -> None:
    """A body of exactly the limit passes, one byte more is refused with 413, before its end where it is streamed."""
    body = b'{"model":"m"}'
    with stand.configured(small_config(max_body_bytes=13)):
        passed = stand.run(stand.envoy(modes).exchange(Request((body,))))
        client = refusal(stand, modes, Bad(body + b" ", 413, "body_too_large"))
    assert passed.upstream is not None
    error = error_of(client)
    assert client is not None
    assert (client.status, error["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("modes", SEEING_MODES, ids=str)
@pytest.mark.parametrize(("size", "chunk"), [(400_000, 16_384), (20_000_000, 1_048_576)], ids=["400KB", "20MB"])
def test_a_large_body_is_refused_like_a_small_one(stand: Stand, modes: ProcessingModes, size: int, chunk: int) -> None:
    """Cut off before its end, 400 KB or 20 MB long."""
    body = b'{"model":"m","prompt":"'.ljust(size, b"x")
    client = refusal(stand, modes, Bad(body, 400, "invalid_json"), chunk)
    error = error_of(client)
    assert client is not None
    assert (client.status, error["code"]) == (400, "invalid_json")
    assert len(client.body) < 500


@pytest.mark.parametrize("modes", SEEING_MODES, ids=str)
@pytest.mark.parametrize(("size", "chunk"), [(400_000, 16_384), (20_000_000, 1_048_576)], ids=["400KB", "20MB"])
def test_a_large_body_passes_whole(stand: Stand, modes: ProcessingModes, size: int, chunk: int) -> None:
    """The same sizes of good JSON: every byte but the model's name arrives."""
    body = b'{"model":"m","prompt":"'.ljust(size - 2, b"x") + b'"}'
    chunks = tuple(body[i : i + chunk] for i in range(0, size, chunk))
    outcome = stand.run(stand.envoy(modes).exchange(Request(chunks)))
    assert outcome.upstream is not None
    expected = b'{"model":"served-model","prompt":"'.ljust(size + 9, b"x") + b'"}'
    # Compared outside of the assertion: a difference is not worth printing 20 MB.
    same = outcome.upstream.body == expected
    assert same
