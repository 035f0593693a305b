"""Filters: each removes the candidates that may not serve a request, and says why."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked


class Filter(Protocol):
    """One reason to leave a backend out. A new filter is one file and one line in ``ranking.FILTERS``."""

    name: str

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Names of the candidates to leave out, each with one sentence that says what was seen.

        ``candidates`` are those that earlier filters kept, never empty. ``rule`` is the matching rule, or a rule
        without conditions that stands for the defaults.
        """
        ...
