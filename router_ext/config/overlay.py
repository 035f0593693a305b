"""The file's tree with the changes of the admin API in it, to be read like the file's own."""

from collections.abc import Mapping as Environ
from dataclasses import dataclass, replace
from typing import Any, Final

from router_ext.config.changes import Changes, FileNames, Spec, Specs
from router_ext.config.document import Mapping, Node, Scalar, Sequence
from router_ext.config.problem import ADMIN_API, Problem
from router_ext.config.spec_node import ENV, SpecNodes
from router_ext.config.wording import plain_key, quoted

_KINDS: Final = {"backends": "backend", "rules": "rule", "budgets": "budget"}


@dataclass(frozen=True, slots=True)
class Overlaid:
    """``root`` with the changes. ``problems`` are values that the API may not give, ``warnings`` what of the file is
    not in force, ``names`` what the file has.
    """

    root: Mapping
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    names: FileNames


def overlaid(root: Mapping, changes: Changes, environ: Environ[str, str]) -> Overlaid:
    """The tree to read. Paths of what came by the API begin with ``admin API``.

    Sections that are not what they should be are left alone: their readers report them. ``environ`` tells the names
    that stand in the file as ``env:NAME``.
    """
    overlay = _Overlay(environ)
    whole = overlay.list_section(root, "backends", changes.backends)
    whole = overlay.list_section(whole, "rules", changes.rules)
    whole = overlay.budgets(whole, changes.budgets)
    names = FileNames(**{key: frozenset(overlay.in_file.get(key, ())) for key in _KINDS})
    return Overlaid(whole, tuple(overlay.specs.problems), tuple(overlay.warnings), names)


class _Overlay:
    """One pass over a tree."""

    def __init__(self, environ: Environ[str, str]) -> None:
        self.specs = SpecNodes()
        self.warnings: list[Problem] = []
        self.in_file: dict[str, list[str]] = {}
        self._environ = environ

    def list_section(self, root: Mapping, key: str, specs: Specs) -> Mapping:
        """``root`` with the list ``key`` as it is with ``specs``: in the place of what they replace, or at its end."""
        section = Sequence(key, 0, ()) if _is_absent(root, key) else root.entries[key]
        if not isinstance(section, Sequence):
            return root
        named = [(self._name_of(item), item) for item in section.items]
        self.in_file[key] = [name for name, _ in named if name]
        if not specs:
            return root
        kept = [node for name, item in named if (node := self._instead(key, name, item, specs)) is not None]
        new = {name: spec for name, spec in specs.items() if name not in self.in_file[key]}
        added = [self._node(key, name, spec) for name, spec in new.items() if spec is not None]
        return _with(root, key, replace(section, items=(*kept, *added)), section.line)

    def budgets(self, root: Mapping, specs: Specs) -> Mapping:
        """``root`` with the table of budgets as it is with ``specs``."""
        table = Mapping("budgets", 0) if _is_absent(root, "budgets") else root.entries["budgets"]
        if not isinstance(table, Mapping):
            return root
        self.in_file["budgets"] = list(table.entries)
        if not specs:
            return root
        for service, spec in specs.items():
            if service in table.entries:
                self._warn("budgets", service, table.entries[service].path, table.key_lines[service], spec)
            table = _without(table, service)
            table = table if spec is None else _with(table, service, self._node("budgets", service, spec), 0)
        return _with(root, "budgets", table, table.line)

    def _instead(self, key: str, name: str, item: Node, specs: Specs) -> Node | None:
        """What stands in the place of one item of the file; None: nothing."""
        if not name or name not in specs:
            return item
        spec = specs[name]
        self._warn(key, name, item.path, item.line, spec)
        return None if spec is None else self._node(key, name, spec)

    def _node(self, key: str, name: str, spec: Spec) -> Node:
        return self.specs.section(dict(spec), f"{ADMIN_API}{key}[{plain_key(name)}]")

    def _warn(self, key: str, name: str, path: str, line: int, spec: Spec | None) -> None:
        done = "removed" if spec is None else "replaced"
        self.warnings.append(Problem(path, line, f"the admin API has {done} {_KINDS[key]} {quoted(name)}"))

    def _name_of(self, item: Node) -> str:
        """Of an item without a name that can be told: nothing."""
        name: Any = item.entries.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, Scalar):
            return ""
        return self._environ.get(name.text.removeprefix(ENV), "") if name.text.startswith(ENV) else name.text


def _is_absent(mapping: Mapping, key: str) -> bool:
    node = mapping.entries.get(key)
    return node is None or (isinstance(node, Scalar) and node.is_null)


def _with(mapping: Mapping, key: str, node: Node, line: int) -> Mapping:
    return replace(mapping, entries={**mapping.entries, key: node}, key_lines={**mapping.key_lines, key: line})


def _without(mapping: Mapping, key: str) -> Mapping:
    entries = {name: node for name, node in mapping.entries.items() if name != key}
    return replace(mapping, entries=entries, key_lines={name: mapping.key_lines[name] for name in entries})
