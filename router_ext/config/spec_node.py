"""Specs that came by the admin API as nodes, so that the readers of the file read them.

They may name no variable of the environment but API keys, and no key may stand in them: they are kept on disk.
"""

import math
import re
from typing import Any, Final

from router_ext.config.document import MAX_DEPTH, Mapping, Node, Scalar, Sequence
from router_ext.config.problem import Problem
from router_ext.config.wording import plain_key

ENV: Final = "env:"
_KEY_NAME: Final = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*_API_KEY")
_INT_BOUND: Final = 2**63


class SpecNodes:
    """Makes nodes of JSON values and collects in ``problems`` what may not be there. Lines are 0."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def section(self, spec: dict[str, Any], path: str) -> Mapping:
        """The node of one spec."""
        entries: dict[str, Node] = {}
        for key, value in spec.items():
            place = f"{path}.{plain_key(key)}"
            is_key = key == "api_key" and isinstance(value, str)
            entries[key] = self._api_key(value, place) if is_key else self._node(value, place, 1)
        return Mapping(path, 0, entries, dict.fromkeys(entries, 0))

    def _api_key(self, text: str, path: str) -> Scalar:
        if not _KEY_NAME.fullmatch(text):
            self._problem(path, "must be env:NAME, where NAME ends in _API_KEY: a key itself would stand on disk")
        return Scalar(path, 0, text, plain=False)

    def _node(self, value: object, path: str, depth: int) -> Node:
        if depth >= MAX_DEPTH:
            self._problem(path, f"nested deeper than {MAX_DEPTH} levels")
            return Scalar(path, 0, "")
        match value:
            case dict():
                entries = {key: self._node(item, f"{path}.{plain_key(key)}", depth + 1) for key, item in value.items()}
                return Mapping(path, 0, entries, dict.fromkeys(entries, 0))
            case list():
                items = [self._node(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
                return Sequence(path, 0, tuple(items))
            case str():
                if value.startswith(ENV):
                    self._problem(path, "must not come from the environment: of a change only api_key may")
                return Scalar(path, 0, value, plain=False)
            case _:
                return Scalar(path, 0, self._plain_text(value, path))

    def _plain_text(self, value: object, path: str) -> str:
        """The text that the readers take for this value."""
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int() if abs(value) < _INT_BOUND:
                return str(value)
            case float() if math.isfinite(value):
                return repr(value)
            case _:
                self._problem(path, "is no JSON, or too large a number")
                return "null"

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, 0, message))
