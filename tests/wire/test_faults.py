"""A bug in the engine: Envoy goes on as if the router had nothing to say, and the bug is counted."""

from collections.abc import AsyncGenerator, Iterator

import pytest

from router_ext.engine.engine import Engine
from router_ext.engine.exchanges import Settled
from router_ext.model.outcome import AccessRecord
from router_ext.stream.effects import Forward, HeaderEdits, Plan, RelayBody, Relayed
from router_ext.stream.events import RequestHead, ResponseHeaders
from tests.fakes.wire_access_log import Entry, send_access_log
from tests.fakes.wire_http import CHAT, Request, Response
from tests.fakes.wire_messages import ProcessingModes
from tests.fakes.wire_stand import Stand, unix_stand
from tests.wire.modes import ALL_MODES, PRODUCT, REQUEST_MODES, can_relay

BODY = b'{"model":"m","stream":true}'
SSE = (("content-type", "text/event-stream"),)
FIRST = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


class BrokenEngine(Engine):
    """Cannot relay, time or settle anything, and plan only for a header ``x-good-plan``; with ``x-bad-edit`` the plan
    cannot be sent.
    """

    async def plan(
        self, head: RequestHead, body: bytes | None, *, can_relay: bool = True, can_follow: bool = True
    ) -> Plan:
        """Fails."""
        if "x-bad-edit" in head.headers:
            return Forward(HeaderEdits((("x-name", "\N{SNOWMAN}"),)), metadata={"id": "no-latin"})
        if "x-good-plan" in head.headers:
            return Forward(failover=True, wait_s=1.0)
        raise RuntimeError("no plan")

    async def relay(self, decision_id: str, seen: ResponseHeaders) -> AsyncGenerator[Relayed]:
        """Fails before its first part."""
        if seen.status:
            raise RuntimeError("no relay")
        yield RelayBody(b"", end=True)

    def first_token(self, decision_id: str) -> None:
        """Fails."""
        raise RuntimeError("no clock")

    def end(self, record: AccessRecord) -> Settled | None:
        """Fails."""
        raise RuntimeError("no ledger")


@pytest.fixture(scope="module")
def shared_stand() -> Iterator[Stand]:
    """A server whose engine is broken."""
    with unix_stand(BrokenEngine) as stand:
        yield stand


def places(stand: Stand) -> list[tuple[str, str]]:
    """Where faults were counted, and what they say."""
    return [(place, str(error)) for place, error in stand.kept.faults]


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
@pytest.mark.parametrize("target", [CHAT, "/v1/files"])
def test_a_bug_while_planning_changes_nothing_for_envoy(stand: Stand, modes: ProcessingModes, target: str) -> None:
    """Neutral replies: no route, no edit, no byte changed in either direction; one fault."""
    request = Request((BODY[:9], BODY[9:]), target=target)
    outcome = stand.run(stand.envoy(modes).exchange(request, Response((b"an", b"swer"))))
    assert outcome.upstream is not None
    assert (outcome.upstream.body, outcome.upstream.cluster, outcome.metadata) == (BODY, None, {})
    assert not outcome.upstream.rerouted
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (200, b"answer")
    assert places(stand) == [("ext_proc", "no plan")]


@pytest.mark.parametrize("modes", [modes for modes in REQUEST_MODES if not modes.before_headers], ids=str)
def test_a_bug_while_planning_loses_no_trailers(stand: Stand, modes: ProcessingModes) -> None:
    """Trailers on both sides."""
    trailers = (("x-sum", "1"),)
    request = Request((BODY,), trailers=trailers)
    outcome = stand.run(stand.envoy(modes).exchange(request, Response((b"{}",), trailers=trailers)))
    assert outcome.upstream is not None
    assert (outcome.upstream.body, outcome.upstream.trailers) == (BODY, trailers)
    assert places(stand) == [("ext_proc", "no plan")]


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
def test_a_bug_while_timing_cuts_no_answer(stand: Stand, modes: ProcessingModes) -> None:
    """The report of the first token fails; every chunk still gets through."""
    request = Request((BODY,), headers=(("x-good-plan", "1"),))
    outcome = stand.run(stand.envoy(modes).exchange(request, Response((FIRST, DONE), headers=SSE)))
    assert outcome.client is not None
    assert outcome.client.body == FIRST + DONE
    assert set(places(stand)) <= {("ext_proc", "no clock")}


@pytest.mark.parametrize("modes", ALL_MODES, ids=str)
@pytest.mark.parametrize("response", [Response((b"bu", b"sy"), 503), Response(status=503)], ids=["body", "headers"])
def test_a_bug_while_failing_over_leaves_the_answer_as_it_is(
    stand: Stand, modes: ProcessingModes, response: Response
) -> None:
    """What the first backend said goes on unchanged."""
    request = Request((BODY,), headers=(("x-good-plan", "1"),))
    outcome = stand.run(stand.envoy(modes).exchange(request, response))
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (503, response.body)
    assert places(stand) == ([("ext_proc", "no relay")] if can_relay(modes) else [])


def test_a_plan_that_cannot_be_sent_is_left_to_envoy(stand: Stand) -> None:
    """The stream ends at once instead of making Envoy wait for a reply that cannot come."""
    request = Request((BODY,), headers=(("x-bad-edit", "1"),))
    outcome = stand.run(stand.envoy(PRODUCT).exchange(request))
    assert outcome.left
    assert outcome.answered == ["request_headers"]
    assert outcome.upstream is not None
    assert (outcome.upstream.body, outcome.upstream.cluster) == (BODY, None)
    assert [place for place, _ in places(stand)] == ["ext_proc"]


def test_a_bug_while_settling_does_not_end_the_log_stream(stand: Stand) -> None:
    """One stream carries the entries of all requests: each fails alone."""
    stand.run(send_access_log(stand.channel, [Entry(), Entry()]))
    assert places(stand) == [("access_log", "no ledger")] * 2
