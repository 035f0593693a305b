"""The fake Envoy where a processor changes its time or its mode: what the real one takes, and what it ignores."""

from dataclasses import replace
from datetime import timedelta

import pytest
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import ProcessingMode, ProcessingModeHeaderSendMode
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    CommonResponse,
    HeaderMutation,
    ProcessingRequest,
    ProcessingResponse,
)

from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.wire_http import Outcome, Request, Response
from tests.fakes.wire_messages import ProcessingModes, ProtocolViolation
from tests.fakes.wire_processor import Replies, Script, scripted
from tests.fakes.wire_replies import REFUSAL, common, echo, instead, neutral, piece, setting
from tests.wire.modes import ALL_MODES, BUFFERED, DUPLEX, NONE, PARTIAL, PRODUCT, STREAMED

BOTH_DUPLEX = ProcessingModes(DUPLEX, DUPLEX)
REQUEST = Request((b"one", b"two"))
RESPONSE = Response((b"three", b"four"))


def wait(seconds: float) -> ProcessingResponse:
    """Asks for more time."""
    return ProcessingResponse(override_message_timeout=timedelta(seconds=seconds))


TO_DUPLEX = ProcessingMode(response_body_mode=DUPLEX, response_trailer_mode=ProcessingModeHeaderSendMode.SEND)
WITHOUT_TRAILERS = ProcessingMode(response_body_mode=DUPLEX)
TO_BUFFERED = ProcessingMode(response_body_mode=BUFFERED)


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


def edited(*pairs: tuple[str, str], removed: tuple[str, ...] = ()) -> HeaderMutation:
    """Sets and removes headers."""
    set_headers = [option for name, value in pairs for option in setting(name, value).set_headers]
    return HeaderMutation(set_headers=set_headers, remove_headers=list(removed))


def new_body(body: bytes, edits: HeaderMutation | None = None) -> ProcessingResponse:
    """A reply to the response's body with another one."""
    response = CommonResponse(body_mutation=BodyMutation(body=body), header_mutation=edits)
    return common("response_body", response)


def holding(*replies: ProcessingResponse, edits: HeaderMutation | None = None, leaves: bool = False) -> Script:
    """A processor that holds the response, and answers its body in this way."""

    def script(kind: str, message: ProcessingRequest) -> Replies:
        if kind == "response_headers":
            return [overriding(kind, edits, TO_BUFFERED)]
        if kind == "response_body":
            return None if leaves else [*replies]
        return [common(kind)]

    return script


async def play(script: Script, modes: ProcessingModes, response: Response = RESPONSE) -> Outcome:
    """One exchange with a short deadline."""
    async with scripted(script) as channel:
        return await FakeEnvoy(channel, modes, deadline_s=0.25).exchange(REQUEST, response)


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


HOLDABLE = [modes for modes in REPLACEABLE if modes.request is BUFFERED and modes.response is not DUPLEX]
HELD_ERROR = edited(
    (":status", "503"), ("content-type", "a/b"), ("content-length", "3"), removed=("content-encoding", "x-kept")
)


def test_every_mode_of_a_response_but_full_duplex_can_be_held() -> None:
    """There its body is shown without waiting for the reply to its headers."""
    assert {modes.response for modes in HOLDABLE} == {NONE, STREAMED, BUFFERED, PARTIAL}


@pytest.mark.parametrize("modes", HOLDABLE, ids=str)
@pytest.mark.parametrize("trailers", [None, (("x-sum", "1"),)])
async def test_a_held_response_is_shown_as_one_body(
    modes: ProcessingModes, trailers: tuple[tuple[str, str], ...] | None
) -> None:
    """With the end of the stream in it, unless trailers follow; without a change it goes on as it came."""
    shown: list[tuple[bytes, bool]] = []

    def script(kind: str, message: ProcessingRequest) -> Replies:
        if kind == "response_body" and message.response_body is not None:
            shown.append((message.response_body.body, message.response_body.end_of_stream))
        return holding(common("response_body"))(kind, message)

    outcome = await play(script, modes, replace(RESPONSE, trailers=trailers))
    assert shown == [(b"threefour", trailers is None)]
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (200, b"threefour")


@pytest.mark.parametrize("modes", HOLDABLE, ids=str)
@pytest.mark.parametrize("sized", [False, True])
async def test_a_held_response_can_become_another_one(modes: ProcessingModes, sized: bool) -> None:
    """Status, type, length and body change with the reply to the body; other headers go where that asks for it."""
    coded = (("content-type", "c/d"), ("content-encoding", "br"), ("x-own", "1"))
    script = holding(new_body(b"new", HELD_ERROR), edits=setting("x-kept", "yes"))
    outcome = await play(script, modes, replace(RESPONSE, headers=coded, sized=sized))
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body, outcome.client.immediate) == (503, b"new", False)
    assert sorted(outcome.client.headers.pairs) == [
        *((":status", "503"), ("content-length", "3"), ("content-type", "a/b"), ("x-own", "1"))
    ]


async def test_a_processor_may_leave_a_held_response() -> None:
    """Envoy lets it go as it is, with the edits of its headers."""
    outcome = await play(holding(edits=setting("x-kept", "yes"), leaves=True), PRODUCT)
    assert outcome.client is not None
    assert (outcome.client.body, outcome.client.headers.get("x-kept")) == (b"threefour", "yes")
    assert outcome.answered[-1] == "response_headers"


@pytest.mark.parametrize("response", [Response(), Response(trailers=(("x-sum", "1"),))])
async def test_a_response_without_a_body_cannot_be_held(response: Response) -> None:
    """There is no body whose reply would release it."""
    with pytest.raises(ProtocolViolation, match="a response is held whose body never comes"):
        await play(holding(common("response_body")), PRODUCT, response)


WRONG = {
    "a held body of another length than announced": (
        PRODUCT,
        holding(new_body(b"new", setting("content-length", "4"))),
        "a new body of 3 bytes, 4 announced",
    ),
    "a held body without a length": (PRODUCT, holding(new_body(b"new")), "a new body of 3 bytes, None announced"),
    "a length that the held body does not have": (
        PRODUCT,
        holding(common("response_body", CommonResponse(header_mutation=setting("content-length", "3")))),
        "3 bytes announced, 9 sent on",
    ),
    "a held body that is never answered": (PRODUCT, holding(), "no reply within the deadline"),
    "a held body that is answered twice": (
        PRODUCT,
        holding(common("response_body"), common("response_body")),
        "replies to nothing",
    ),
    "a held body that is answered in pieces": (
        PRODUCT,
        holding(PIECES[0], PIECES[1]),
        "a streamed response outside full duplex",
    ),
    "holding twice": (
        PRODUCT,
        holding(overriding("response_body", mode=TO_BUFFERED)),
        "response_body: a mode override that Envoy ignores",
    ),
    "holding a request": (
        PRODUCT,
        instead(neutral, "request_headers", overriding("request_headers", mode=TO_BUFFERED)),
        "request_headers: a mode override that Envoy ignores",
    ),
    "holding a response whose body does not wait": (
        ProcessingModes(BUFFERED, STREAMED, before_headers=True),
        holding(common("response_body")),
        "response_headers: a mode override that Envoy ignores",
    ),
    "holding beside a full-duplex request": (
        ProcessingModes(DUPLEX, STREAMED),
        lambda kind, message: (
            echo(kind, message) if kind.startswith("request") else holding(common("response_body"))(kind, message)
        ),
        "response_headers: a mode override that Envoy ignores",
    ),
    "holding a full-duplex response": (
        ProcessingModes(BUFFERED, DUPLEX),
        holding(common("response_body")),
        "a response is held whose body is being shown already",
    ),
    "header edits without holding": (
        PRODUCT,
        instead(neutral, "response_body", new_body(b"new", HELD_ERROR)),
        "header edits after the headers have gone on",
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
            overriding("response_headers", mode=WITHOUT_TRAILERS),
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
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_processor_fails_the_test(name: str) -> None:
    """Real Envoy ignores each of these, and then waits in vain or gives the client another body than was meant."""
    modes, script, reason = WRONG[name]
    with pytest.raises(ProtocolViolation, match=reason):
        await play(script, modes)
