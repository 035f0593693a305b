"""Which rule applies to a request."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Match, Rule


def matches(match: Match, request: InferenceRequest) -> bool:
    """True when every condition of ``match`` holds; an empty condition always does.

    ``lora`` compares with the request's model name, which is where a client names an adapter.
    """
    caller = request.caller
    return (
        _text(match.service, caller.service)
        and match.call_type in ("", caller.call_type)
        and match.tier in (0, caller.tier)
        and _text(match.model, request.model)
        and match.lora in ("", request.model)
        and match.priority_level in ("", caller.priority_level)
        and match.content_type in ("", request.content_type)
    )


def _text(pattern: str, value: str) -> bool:
    if pattern in ("", value):
        return True
    return "*" in pattern and fnmatchcase(value, pattern.replace("[", "[[]").replace("?", "[?]"))


class RuleTable:
    """The rules in the order in which they are tried: highest priority first, the file's order among equals."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(sorted(rules, key=lambda rule: -rule.priority))
        self.needs_content_type = any(rule.match.content_type for rule in self._rules)

    def first_match(self, request: InferenceRequest) -> Rule | None:
        """The rule that applies, None when the defaults do."""
        return next((rule for rule in self._rules if matches(rule.match, request)), None)
