"""The YAML file as a tree whose nodes know their line and path.

Only plain data is accepted: no anchors, aliases or tags, one document, bounded in nodes and depth. Scalars follow the
YAML 1.2 core schema, so ``on``, ``1:30``, ``0123`` and ``2024-01-01`` are text and not a flag, a number or a date.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from router_ext.config.problem import ConfigError, Problem
from router_ext.config.wording import plain_key

MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 24

_NUMBER_CHARS: Final = 64
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
)
_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. ``plain`` is false for quoted text; ``env`` names the variable that the text was taken from."""

    path: str
    line: int
    text: str
    plain: bool = True
    env: str = ""

    @property
    def value(self) -> Value:
        """The value by the YAML 1.2 core schema; quoted text is always text."""
        return _typed(self.text) if self.plain else self.text

    @property
    def is_null(self) -> bool:
        """True when the file gives no value."""
        return self.value is None and not self.env


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    path: str
    line: int
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values, and the line of each key."""

    path: str
    line: int
    entries: dict[str, "Node"] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Document:
    """A file's tree, its repeated and unusable keys, and the line of every path."""

    root: Mapping
    problems: tuple[Problem, ...]
    lines: dict[str, int]


def compose(text: str, source: str) -> Document:
    """The tree of ``text``. Raises ConfigError with one problem when it is not a plain YAML mapping."""
    tree = _compose_yaml(text, source)
    if tree is None:
        raise ConfigError(source, [Problem("", 0, "the file is empty")])
    builder = _Builder()
    root = builder.node(tree, "")
    if not isinstance(root, Mapping):
        raise ConfigError(source, [Problem("", root.line, "expected keys with values at the top level")])
    return Document(root, tuple(builder.problems), builder.lines)


def _typed(text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _NUMBER_CHARS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


class _RefusedError(yaml.YAMLError):
    def __init__(self, message: str, event: yaml.Event) -> None:
        super().__init__(message)
        self.message = message
        self.line = event.start_mark.line + 1 if event.start_mark else 0


class _PlainLoader(yaml.SafeLoader):
    """Composes nodes while it refuses what a configuration does not need and what could make it explode."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._admit(self.peek_event())  # type: ignore[no-untyped-call]  # the stubs leave it out
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _admit(self, event: yaml.Event) -> None:
        self._nodes += 1
        reason = self._refusal(event)
        if reason:
            raise _RefusedError(reason, event)

    def _refusal(self, event: yaml.Event) -> str:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return "anchors and aliases are not supported"
        if getattr(event, "tag", None):
            return "tags are not supported"
        if self._depth >= MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        return f"more than {MAX_NODES} values" if self._nodes > MAX_NODES else ""


def _compose_yaml(text: str, source: str) -> yaml.Node | None:
    loader: _PlainLoader | None = None
    try:
        loader = _PlainLoader(text)
        return loader.get_single_node()
    except yaml.YAMLError as error:
        raise ConfigError(source, [_yaml_problem(error, text)]) from None
    except ValueError:
        # PyYAML lets these through for escapes beyond Unicode and for absurd %YAML versions.
        line = loader.line + 1 if loader is not None else 0
        raise ConfigError(
            source, [Problem("", line, "not valid YAML: a number or an escape is out of range")]
        ) from None


def _yaml_problem(error: yaml.YAMLError, text: str) -> Problem:
    """PyYAML's own ``str`` quotes the line, which may hold a key: only its fixed phrases are used."""
    if isinstance(error, _RefusedError):
        return Problem("", error.line, error.message)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Problem("", line, f"not valid YAML: character U+{ord(text[error.position]):04X} is not allowed")
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark or error.context_mark):
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        return Problem("", mark.line + 1, f"not valid YAML: {reason} (column {mark.column + 1})")
    return Problem("", 0, "not valid YAML")


class _Builder:
    """Turns PyYAML's nodes into ours."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def node(self, node: yaml.Node, path: str) -> Node:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, line)
        if isinstance(node, yaml.SequenceNode):
            items = (self.node(item, f"{path}[{index}]") for index, item in enumerate(node.value))
            return Sequence(path, line, tuple(items))
        return Scalar(path, line, node.value, plain=isinstance(node, yaml.ScalarNode) and not node.style)

    def _mapping(self, node: yaml.MappingNode, path: str, line: int) -> Mapping:
        mapping = Mapping(path, line)
        for key, value in self._entries(node, path):
            key_line = key.start_mark.line + 1
            name = plain_key(key.value)
            if key.value in mapping.entries:
                first = mapping.key_lines[key.value]
                self.problems.append(Problem(path, key_line, f"key '{name}' is repeated (first on line {first})"))
                continue
            mapping.key_lines[key.value] = key_line
            mapping.entries[key.value] = self.node(value, f"{path}.{name}" if path else name)
        return mapping

    def _entries(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value:
                yield key, value
            else:
                self.problems.append(Problem(path, key.start_mark.line + 1, "a key must be a name"))
