"""GATE-15: a body that was replaced kept the gzip coding of the first one, so that no client could read it."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from router_ext.config.sections import OnExhausted, QualityGate
from router_ext.model.gate import Checks
from tests.fakes.chat_answers import completion
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.wire_http import Client, Request, Response
from tests.fakes.wire_stand import CONFIG, Stand, unix_stand

GATE: Final = QualityGate(enabled=True, fallback_backend="gamma", checks=Checks(min_length=3))
STAND_IN: Final = Response((b"router unavailable",), 503, (("content-type", "text/plain"), ("etag", '"e"')), sized=True)
"""What Envoy says in place of an upstream while the router brings the answer."""

GZIPPED: Final = gzip.compress(b'{"error":"no"}', mtime=0)
CODED: Final = (("content-type", "application/json"), ("content-encoding", "gzip"), ("etag", '"x"'))
GOOD: Final = completion({"role": "assistant", "content": "Hello."})
JSON: Final = ("content-type", "application/json")


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    """A server that looks at every answer."""
    with unix_stand() as running:
        yield running


def given(stand: Stand, cheap: CannedAnswer, fallback: CannedAnswer, gate: QualityGate = GATE) -> Client:
    """What the client gets of one request."""
    stand.forget()
    stand.dispatcher.answer("alpha", cheap)
    stand.dispatcher.answer("gamma", fallback)
    with stand.configured(replace(CONFIG, quality_gate=gate)):
        outcome = stand.run(stand.envoy().exchange(Request((b'{"model":"m","messages":[]}',)), STAND_IN))
    assert outcome.client is not None
    return outcome.client


def described(client: Client) -> list[tuple[str, str]]:
    """What the headers say of the body."""
    names = ("content-type", "content-encoding", "content-length", "etag")
    return [pair for pair in client.headers.pairs if pair[0] in names]


@pytest.mark.parametrize("status", [200, 500])
def test_the_fallbacks_answer_keeps_nothing_that_was_said_of_the_first_one(stand: Stand, status: int) -> None:
    """Whether that was an answer that cannot be read or an error; nor is anything left of Envoy's stand-in."""
    client = given(stand, CannedAnswer(status, CODED, (GZIPPED,)), CannedAnswer(200, (JSON,), (GOOD,)))
    assert (client.status, client.body) == (200, GOOD)
    assert described(client) == [JSON]
    assert client.headers.get("x-kronaxis-quality") == "fallback"


def test_what_the_fallback_says_of_its_own_answer_stays(stand: Stand) -> None:
    """Its tag is that of these bytes."""
    own = (JSON, ("etag", '"y"'))
    client = given(stand, CannedAnswer(200, CODED, (GZIPPED,)), CannedAnswer(200, own, (GOOD,)))
    assert described(client) == [*own]


def test_an_answer_that_nobody_could_better_keeps_its_coding(stand: Stand) -> None:
    """The bytes are those of the backend, so its headers are true; nothing of the fallback's error is left."""
    error = CannedAnswer(503, (JSON, ("etag", '"z"'), ("content-language", "en")), (b"{}",))
    client = given(stand, CannedAnswer(200, CODED, (GZIPPED,)), error)
    assert (client.status, client.body) == (200, GZIPPED)
    assert described(client) == [*CODED]
    assert "content-language" not in client.headers


def test_the_error_in_place_of_a_bad_answer_has_no_coding(stand: Stand) -> None:
    """It is the router's own JSON."""
    bad = CannedAnswer(200, CODED, (GZIPPED,))
    client = given(stand, bad, bad, replace(GATE, on_exhausted=OnExhausted.ERROR))
    assert (client.status, json.loads(client.body)["error"]["code"]) == (502, "quality_gate_failed")
    assert described(client) == [JSON]
