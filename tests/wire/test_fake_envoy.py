"""The fake Envoy itself: it plays along with a processor that is right and fails with each that is not."""

import pytest
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    CommonResponse,
    CommonResponseResponseStatus,
    HeaderMutation,
    ProcessingRequest,
    ProcessingResponse,
)

from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.wire_http import Outcome, Request, Response
from tests.fakes.wire_messages import ProcessingModes, ProtocolViolation
from tests.fakes.wire_processor import Replies, Script, scripted
from tests.fakes.wire_replies import REFUSAL, common, echo, instead, leaving, neutral, piece, setting
from tests.wire.modes import BUFFERED, DUPLEX, PRODUCT, STREAMED

BOTH_DUPLEX = ProcessingModes(DUPLEX, DUPLEX)
REQUEST = Request((b"one", b"two"), trailers=None)
RESPONSE = Response((b"three", b"four"))


async def play(script: Script, modes: ProcessingModes) -> Outcome:
    """One exchange with a short deadline."""
    async with scripted(script) as channel:
        return await FakeEnvoy(channel, modes, deadline_s=0.25).exchange(REQUEST, RESPONSE)


@pytest.mark.parametrize(
    ("script", "modes"),
    [(neutral, PRODUCT), (neutral, ProcessingModes(STREAMED, BUFFERED)), (echo, BOTH_DUPLEX)],
    ids=["product", "streamed", "duplex"],
)
async def test_a_right_processor_is_played_to_the_end(script: Script, modes: ProcessingModes) -> None:
    """Nothing changes on the way, in either direction."""
    outcome = await play(script, modes)
    assert outcome.upstream is not None
    assert (outcome.upstream.body, outcome.upstream.cluster) == (b"onetwo", None)
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (200, b"threefour")
    assert not outcome.left


async def test_a_processor_may_leave_outside_full_duplex() -> None:
    """Envoy goes on alone."""
    outcome = await play(leaving(neutral, "response_headers"), PRODUCT)
    assert outcome.left
    assert outcome.client is not None
    assert outcome.client.body == b"threefour"


async def test_an_immediate_response_is_the_answer() -> None:
    """The upstream sees nothing."""
    outcome = await play(instead(neutral, "request_body", REFUSAL), PRODUCT)
    assert outcome.upstream is None
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body, outcome.client.immediate) == (403, b"no", True)


def body_of(text: bytes, headers: HeaderMutation | None = None) -> CommonResponse:
    """A replaced body."""
    return CommonResponse(header_mutation=headers, body_mutation=BodyMutation(body=text))


REROUTE = CommonResponse(clear_route_cache=True)
EDIT = CommonResponse(header_mutation=setting("x-a", "1"))
REPLACE = CommonResponse(status=CommonResponseResponseStatus.CONTINUE_AND_REPLACE)
STREAMING = ProcessingModes(STREAMED, STREAMED)

WRONG = {
    "no reply": (PRODUCT, instead(neutral, "request_body"), "no reply within the deadline"),
    "two replies": (
        PRODUCT,
        instead(neutral, "request_headers", *[common("request_headers")] * 2),
        "request_headers in reply to request_body",
    ),
    "two replies at the end": (
        PRODUCT,
        instead(neutral, "response_body", *[common("response_body")] * 2),
        "replies to nothing",
    ),
    "a reply of another kind": (
        PRODUCT,
        instead(neutral, "request_body", common("request_headers")),
        "request_headers in reply to request_body",
    ),
    "a reply of no kind": (PRODUCT, instead(neutral, "request_headers", ProcessingResponse()), "a reply of no kind"),
    "a new route for a response": (
        PRODUCT,
        instead(neutral, "response_headers", common("response_headers", REROUTE)),
        "a new route",
    ),
    "a body without its length": (
        PRODUCT,
        instead(neutral, "request_body", common("request_body", body_of(b"new"))),
        "3 bytes, 6 announced",
    ),
    "a body with another length": (
        PRODUCT,
        instead(neutral, "request_body", common("request_body", body_of(b"new", setting("content-length", "4")))),
        "3 bytes, 4 announced",
    ),
    "a streamed response where none is due": (
        STREAMING,
        instead(neutral, "request_body", piece("request_body", b"one", False)),
        "a streamed response outside full duplex",
    ),
    "header edits that come too late": (
        STREAMING,
        instead(neutral, "request_body", common("request_body", EDIT)),
        "after the headers have gone on",
    ),
    "a body in reply to headers": (
        PRODUCT,
        instead(neutral, "request_headers", common("request_headers", body_of(b"new"))),
        "a body that Envoy ignores",
    ),
    "continue and replace": (
        PRODUCT,
        instead(neutral, "request_headers", common("request_headers", REPLACE)),
        "CONTINUE_AND_REPLACE",
    ),
    "a reply after the immediate response": (
        PRODUCT,
        instead(neutral, "request_headers", REFUSAL, common("request_headers")),
        "replies to nothing",
    ),
    "an immediate response in a body": (
        STREAMING,
        instead(neutral, "response_body", REFUSAL),
        "an immediate response after the response headers",
    ),
    "a plain reply in full duplex": (BOTH_DUPLEX, neutral, "not a plain streamed response"),
    "bytes after the end": (
        BOTH_DUPLEX,
        instead(echo, "request_body", piece("request_body", b"one", True), piece("request_body", b"two", True)),
        "request_body in reply to response_headers",
    ),
    "a body without an end": (
        BOTH_DUPLEX,
        instead(echo, "request_body", piece("request_body", b"one", False)),
        "no reply within the deadline",
    ),
    "leaving in a full-duplex body": (BOTH_DUPLEX, leaving(echo, "request_body"), "left in the middle of the request"),
    "leaving before a full-duplex answer": (
        BOTH_DUPLEX,
        leaving(echo, "response_headers"),
        "left in the middle of the response",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_processor_fails_the_test(name: str) -> None:
    """Each of these makes real Envoy fail the request, wait in vain, or cut or double a body."""
    modes, script, reason = WRONG[name]
    with pytest.raises(ProtocolViolation, match=reason):
        await play(script, modes)


async def test_a_crash_of_the_processor_fails_the_test(caplog: pytest.LogCaptureFixture) -> None:
    """An exception that escapes a servicer ends the stream with an error."""

    def crash(kind: str, message: ProcessingRequest) -> Replies:
        raise RuntimeError(kind)

    with pytest.raises(ProtocolViolation, match="UNKNOWN"):
        await play(crash, PRODUCT)
    caplog.clear()
