"""Which rule applies."""

import pytest

from router_ext.model.request import Caller
from router_ext.model.rule import Match, Rule
from router_ext.routing.rules import RuleTable, matches
from tests.fakes.domain import request

CALLER = Caller(service="shop", call_type="chat", priority_level="high", tier=2)
REQUEST = request("gpt-4", CALLER, "vision")

MATCHING = [
    Match(),
    Match(service="shop"),
    Match(service="sh*"),
    Match(service="*"),
    Match(call_type="chat"),
    Match(tier=2),
    Match(model="gpt-4"),
    Match(model="gpt-*"),
    Match(model="*4"),
    Match(model="g*-*4"),
    Match(lora="gpt-4"),
    Match(priority_level="high"),
    Match(content_type="vision"),
    Match("shop", "chat", 2, "gpt-4", "gpt-4", "high", "vision"),
]

OTHERS = [
    Match(service="Shop"),
    Match(service="shop-2"),
    Match(service="*x"),
    Match(call_type="chat-2"),
    Match(call_type="*"),
    Match(tier=1),
    Match(tier=3),
    Match(model="gpt-"),
    Match(model="pt-*"),
    Match(model="gpt-?"),
    Match(model="gpt-[4]*"),
    Match(lora="gpt-*"),
    Match(priority_level="low"),
    Match(content_type="text"),
    Match("shop", "chat", 2, "gpt-4", "gpt-4", "high", "text"),
]


@pytest.mark.parametrize("match", MATCHING, ids=str)
def test_a_rule_matches_when_every_condition_holds(match: Match) -> None:
    """An empty condition always does; ``*`` stands for any run of characters."""
    assert matches(match, REQUEST)


@pytest.mark.parametrize("match", OTHERS, ids=str)
def test_one_condition_that_fails_is_enough(match: Match) -> None:
    """Case counts, the whole text counts, and ``?`` and ``[`` are ordinary characters."""
    assert not matches(match, REQUEST)


def test_brackets_and_question_marks_match_themselves() -> None:
    """Model names may hold them."""
    assert matches(Match(model="m[1]?*"), request("m[1]?x"))
    assert not matches(Match(model="m[1]?*"), request("m1yx"))


def test_a_condition_does_not_match_a_header_that_was_not_sent() -> None:
    """An anonymous caller has empty texts and tier 0; a bare ``*`` takes it too."""
    anonymous = request("m")
    assert not matches(Match(service="shop"), anonymous)
    assert not matches(Match(tier=1), anonymous)
    assert matches(Match(service="*"), anonymous)


def _first(*rules: Rule) -> str | None:
    rule = RuleTable(rules).first_match(REQUEST)
    return rule.name if rule else None


def test_the_highest_priority_wins() -> None:
    """Negative priorities come after the default of 0."""
    assert _first(Rule("low", 1), Rule("high", 2), Rule("none")) == "high"
    assert _first(Rule("minus", -1), Rule("none")) == "none"


def test_equal_priorities_keep_the_order_of_the_file() -> None:
    """The first of them wins."""
    assert _first(Rule("one", 5), Rule("two", 5)) == "one"
    assert _first(Rule("two", 5), Rule("one", 5)) == "two"


def test_a_rule_that_does_not_match_is_passed_over() -> None:
    """Whatever its priority; without any match the defaults apply."""
    other = Rule("other", 9, Match(service="x"))
    assert _first(other, Rule("all")) == "all"
    assert _first(other) is None


@pytest.mark.parametrize(("content_type", "needed"), [("", False), ("text", True), ("vision", True)])
def test_the_content_type_is_needed_when_a_rule_looks_at_it(content_type: str, needed: bool) -> None:
    """Else reading the messages would be a waste."""
    table = RuleTable([Rule("a"), Rule("b", match=Match(content_type=content_type))])
    assert table.needs_content_type is needed
