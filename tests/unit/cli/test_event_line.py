"""A live decision as a line."""

import io
from collections.abc import Mapping

from google.protobuf.json_format import ParseDict
from rich.console import Console

from router_ext.cli.event_line import event_line
from router_ext.cli.tail import lines_to
from router_ext.v1 import decisions_pb2 as pb

DECISION = {
    "id": "p-1",
    "time": "2026-11-30T18:00:01.250Z",
    "request": {"service": "shop"},
    "rule": "cheap",
    "backend": "a",
}
END = {
    "backend": "a",
    "attempts": 1,
    "status": 200,
    "ttftMs": 120.4,
    "pin": "hit",
    "costMicroUsd": 1234,
    "usage": {"promptTokens": 900, "cachedTokens": 512, "completionTokens": 20},
}


def event(decision: Mapping[str, object] = DECISION, **parts: object) -> pb.WatchEvent:
    """An event of these parts, in JSON."""
    return ParseDict({"decision": decision, **parts}, pb.WatchEvent())


def line(*args: object, **parts: object) -> str:
    """The line without colours."""
    return event_line(event(**parts)).plain  # type: ignore[arg-type]


def test_a_request_that_was_answered_is_a_line_of_its_figures() -> None:
    """Time, status, service, rule, backend, pin, time to first token, tokens, cost, attempts."""
    assert line(settlement=END) == (
        "18:00:01.250  200 shop cheap a pin=hit ttft=120ms tokens=900(512)+20 cost=$0.001234 attempts=1"
    )


def test_a_failed_request_says_how_and_who_was_asked_before() -> None:
    """What is not known is a dash; estimated tokens have a tilde."""
    end = {"backend": "b", "attempts": 2, "failure": "cut", "alsoAsked": ["a"]}
    assert line(settlement=end) == (
        "18:00:01.250    - shop cheap a→b pin=- ttft=- tokens=- cost=$0.000000 attempts=2 cut"
    )
    estimated = {**END, "usage": {"promptTokens": 9, "completionTokens": 1, "estimated": True}}
    assert "tokens=~9+1 " in line(settlement=estimated)


def test_a_refused_request_says_why() -> None:
    """Also where nothing was decided."""
    bare = {"time": "2026-11-30T18:00:01Z", "request": {}}
    assert line(decision=bare, refusal={"status": 400, "code": "invalid_json"}) == (
        "18:00:01.000  400 - - - invalid_json"
    )


def test_a_decision_that_was_made_just_now_has_no_end() -> None:
    """Its status is open."""
    assert line() == "18:00:01.250    … shop cheap a"


def test_colours_are_for_terminals_only() -> None:
    """And a watcher that was too slow is told how much it missed; a line is never broken."""
    plain, coloured = io.StringIO(), io.StringIO()
    long = event({**DECISION, "rule": "r" * 200}, settlement=END, dropped=7)
    lines_to(Console(file=plain, highlight=False, width=40))(long)
    lines_to(Console(file=coloured, highlight=False, force_terminal=True, width=40, no_color=False))(long)
    missed, shown = plain.getvalue().splitlines()
    assert missed.startswith("… 7 more")
    assert "r" * 200 in shown
    assert "\x1b[" not in plain.getvalue()
    assert "\x1b[" in coloured.getvalue()


def test_markup_in_a_name_is_text() -> None:
    """A service can be called anything that is printable."""
    named = {**DECISION, "request": {"service": "[red]x[/]"}}
    assert " [red]x[/] " in line(decision=named, settlement=END)
