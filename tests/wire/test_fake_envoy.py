"""The fake Envoy itself: it plays along with a processor that is right and fails with each that is not."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from envoy_data_plane.envoy.config.core.v3 import HeaderValue, HeaderValueOption, HeaderValueOptionHeaderAppendAction
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import ProcessingMode, ProcessingModeHeaderSendMode
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    BodyResponse,
    CommonResponse,
    CommonResponseResponseStatus,
    HeaderMutation,
    HeadersResponse,
    ImmediateResponse,
    ProcessingRequest,
    ProcessingResponse,
    StreamedBodyResponse,
    TrailersResponse,
)
from envoy_data_plane.envoy.type.v3 import HttpStatus, StatusCode

from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.wire_http import Outcome, Request, Response
from tests.fakes.wire_messages import ProcessingModes, ProtocolViolation
from tests.fakes.wire_processor import Script, scripted
from tests.wire.modes import ALL_MODES, BUFFERED, DUPLEX, PRODUCT, STREAMED

BOTH_DUPLEX = ProcessingModes(DUPLEX, DUPLEX)
REQUEST = Request((b"one", b"two"), trailers=None)
RESPONSE = Response((b"three", b"four"))

Replies = Sequence[ProcessingResponse] | None


def common(kind: str, response: CommonResponse | None = None) -> ProcessingResponse:
    """A reply to headers or a body."""
    match kind:
        case "request_headers":
            return ProcessingResponse(request_headers=HeadersResponse(response=response))
        case "response_headers":
            return ProcessingResponse(response_headers=HeadersResponse(response=response))
        case "request_body":
            return ProcessingResponse(request_body=BodyResponse(response=response))
        case "response_body":
            return ProcessingResponse(response_body=BodyResponse(response=response))
        case "request_trailers":
            return ProcessingResponse(request_trailers=TrailersResponse())
        case _:
            return ProcessingResponse(response_trailers=TrailersResponse())


def neutral(kind: str, message: ProcessingRequest) -> list[ProcessingResponse]:
    """A processor that changes nothing."""
    return [common(kind)]


def piece(kind: str, data: bytes, end: bool) -> ProcessingResponse:
    """A streamed response."""
    streamed = StreamedBodyResponse(body=data, end_of_stream=end)
    return common(kind, CommonResponse(body_mutation=BodyMutation(streamed_response=streamed)))


def echo(kind: str, message: ProcessingRequest) -> list[ProcessingResponse]:
    """A full-duplex processor that changes nothing."""
    body = message.request_body or message.response_body
    return [common(kind)] if body is None else [piece(kind, body.body, body.end_of_stream)]


def setting(name: str, value: str) -> HeaderMutation:
    """Sets a header."""
    option = HeaderValueOption(
        header=HeaderValue(key=name, raw_value=value.encode()),
        append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return HeaderMutation(set_headers=[option])


REFUSAL = ProcessingResponse(
    immediate_response=ImmediateResponse(status=HttpStatus(code=StatusCode.Forbidden), body=b"no")
)


def instead(base: Script, at: str, *replies: ProcessingResponse) -> Script:
    """``base`` with other replies to one kind of message."""
    return lambda kind, message: list(replies) if kind == at else base(kind, message)


def leaving(base: Script, at: str) -> Script:
    """``base`` that ends the stream in the place of one kind of reply."""
    return lambda kind, message: None if kind == at else base(kind, message)


def wait(seconds: float) -> ProcessingResponse:
    """Asks for more time."""
    return ProcessingResponse(override_message_timeout=timedelta(seconds=seconds))


TO_DUPLEX = ProcessingMode(response_body_mode=DUPLEX, response_trailer_mode=ProcessingModeHeaderSendMode.SEND)


def overriding(kind: str, edits: HeaderMutation | None = None, mode: ProcessingMode = TO_DUPLEX) -> ProcessingResponse:
    """A reply that changes the mode."""
    response = None if edits is None else CommonResponse(header_mutation=edits)
    return replace(common(kind, response), mode_override=mode)


def taking_over(*pieces: ProcessingResponse, edits: HeaderMutation | None = None, leaves: bool = False) -> Script:
    """A processor that brings the response's body itself, and looks at no piece of the other one."""

    def script(kind: str, message: ProcessingRequest) -> Replies:
        if kind == "response_headers":
            return [overriding(kind, edits), *pieces]
        if kind.startswith("response"):
            return None if leaves else []
        return [common(kind)]

    return script


async def play(
    script: Script, modes: ProcessingModes, request: Request = REQUEST, response: Response = RESPONSE
) -> Outcome:
    """One exchange with a short deadline."""
    async with scripted(script) as channel:
        return await FakeEnvoy(channel, modes, deadline_s=0.25).exchange(request, response)


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


@pytest.mark.parametrize("kind", ["request_headers", "request_body", "response_headers", "response_body"])
async def test_a_processor_may_ask_for_more_time_once_a_message(kind: str) -> None:
    """The reply itself follows, and changes nothing here."""
    outcome = await play(instead(neutral, kind, wait(2.5), common(kind)), ProcessingModes(BUFFERED, BUFFERED))
    assert outcome.waits == [2.5]
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (200, b"threefour")


REPLACEABLE = [modes for modes in ALL_MODES if modes.request is not DUPLEX and not modes.before_headers]
PIECES = (piece("response_body", b"n", False), piece("response_body", b"ew", True))


@pytest.mark.parametrize("modes", [modes for modes in REPLACEABLE if modes.request is BUFFERED], ids=str)
@pytest.mark.parametrize("leaves", [False, True])
async def test_a_processor_may_take_the_response_over(modes: ProcessingModes, leaves: bool) -> None:
    """The client gets its status, its headers and its body, and nothing of the other body or its trailers."""
    script = taking_over(*PIECES, edits=setting(":status", "201"), leaves=leaves)
    for trailers in (None, (("x-sum", "1"),)):
        outcome = await play(script, modes, response=replace(RESPONSE, status=503, trailers=trailers))
        assert outcome.client is not None
        assert (outcome.client.status, outcome.client.body) == (201, b"new")
        assert outcome.answered[-3:] == ["response_headers", "response_body", "response_body"]


@pytest.mark.parametrize("modes", [PRODUCT, ProcessingModes(BUFFERED, BUFFERED)], ids=str)
async def test_a_response_that_is_taken_over_must_lose_its_length(modes: ProcessingModes) -> None:
    """Envoy would cut the new body there."""
    sized = replace(RESPONSE, sized=True)
    without = HeaderMutation(remove_headers=["content-length"])
    outcome = await play(taking_over(*PIECES, edits=without), modes, response=sized)
    assert outcome.client is not None
    assert outcome.client.body == b"new"
    for edits in (None, setting("content-length", "3")):
        with pytest.raises(ProtocolViolation, match="content-length is left over"):
            await play(taking_over(*PIECES, edits=edits), modes, response=sized)


async def test_headers_that_end_a_response_cannot_be_taken_over() -> None:
    """There is no body phase in which the new body could be sent."""
    with pytest.raises(ProtocolViolation, match="a body is taken over that never comes"):
        await play(taking_over(*PIECES), PRODUCT, response=Response())


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
    "more time asked for twice": (
        PRODUCT,
        instead(neutral, "response_headers", wait(1), wait(1), common("response_headers")),
        "override_message_timeout in reply to response_headers",
    ),
    "more time and then no reply": (PRODUCT, instead(neutral, "request_body", wait(1)), "no reply within the deadline"),
    "less than a millisecond more": (
        PRODUCT,
        instead(neutral, "request_body", wait(0.000_999), common("request_body")),
        "a timeout override of 0:00:00.000999",
    ),
    "more time than the filter grants": (
        PRODUCT,
        instead(neutral, "request_body", wait(3600.001), common("request_body")),
        "a timeout override of 1:00:00.001",
    ),
    "more time within a reply": (
        PRODUCT,
        instead(neutral, "request_body", replace(common("request_body"), override_message_timeout=timedelta(1))),
        "a reply beside a timeout override",
    ),
    "more time after the reply": (
        PRODUCT,
        instead(neutral, "request_headers", common("request_headers"), wait(1), wait(1)),
        "override_message_timeout in reply to request_body",
    ),
    "more time at the end": (
        PRODUCT,
        instead(neutral, "response_body", common("response_body"), wait(1)),
        "override_message_timeout",
    ),
    "more time in a full-duplex body": (
        BOTH_DUPLEX,
        instead(echo, "request_body", wait(1)),
        "override_message_timeout in reply to request_body",
    ),
    "a mode override for a request": (
        PRODUCT,
        instead(neutral, "request_headers", overriding("request_headers")),
        "request_headers: a mode override that Envoy ignores",
    ),
    "a mode override in a body": (
        PRODUCT,
        instead(neutral, "response_body", overriding("response_body")),
        "response_body: a mode override that Envoy ignores",
    ),
    "a mode override beside a full-duplex request": (
        ProcessingModes(DUPLEX, STREAMED),
        lambda kind, message: (
            echo(kind, message) if kind.startswith("request") else taking_over(*PIECES)(kind, message)
        ),
        "response_headers: a mode override that Envoy ignores",
    ),
    "a mode override where bodies do not wait": (
        ProcessingModes(BUFFERED, STREAMED, before_headers=True),
        taking_over(*PIECES),
        "response_headers: a mode override that Envoy ignores",
    ),
    "a mode override to anything else": (
        PRODUCT,
        instead(neutral, "response_headers", overriding("response_headers", mode=ProcessingMode())),
        "response_headers: a mode override to",
    ),
    "a mode override without trailers": (
        PRODUCT,
        instead(
            neutral,
            "response_headers",
            overriding(
                "response_headers", mode=replace(TO_DUPLEX, response_trailer_mode=ProcessingModeHeaderSendMode.DEFAULT)
            ),
        ),
        "response_headers: a mode override to",
    ),
    "a plain reply after taking over": (
        PRODUCT,
        taking_over(common("response_body")),
        "not a plain streamed response",
    ),
    "a new body without an end": (PRODUCT, taking_over(PIECES[0]), "no reply within the deadline"),
    "leaving in a new body": (PRODUCT, taking_over(PIECES[0], leaves=True), "left in the middle of the response"),
    "a new body after its end": (PRODUCT, taking_over(*PIECES, PIECES[1]), "replies to nothing"),
    "an immediate response after taking over": (
        PRODUCT,
        taking_over(REFUSAL),
        "an immediate response after the response headers",
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
