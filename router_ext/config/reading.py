"""One pass over a document: what was found wrong, and which names were declared and referred to."""

import re
from collections.abc import Mapping as Environ
from dataclasses import replace
from pathlib import Path
from typing import Final

from router_ext.config.document import Node, Scalar, Sequence
from router_ext.config.problem import Problem
from router_ext.config.wording import quoted, suggestion

_ENV: Final = "env:"
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Reading:
    """Collects problems, warnings and names while the readers walk the tree. Use one for one file, once."""

    def __init__(self, environ: Environ[str, str], folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.referenced: set[str] = set()
        self._environ = environ
        self._declared: dict[tuple[str, str], Node] = {}
        self._references: list[tuple[str, Node]] = []

    def problem(self, node: Node, message: str) -> None:
        """Records that ``node`` is wrong."""
        self.problems.append(Problem(node.path, node.line, message))

    def warn(self, node: Node, message: str) -> None:
        """Records that ``node`` is doubtful."""
        self.warnings.append(Problem(node.path, node.line, message))

    def scalar(self, node: Node, expects: str) -> Scalar | None:
        """``node`` with ``env:NAME`` replaced by the variable's text; None after recording why there is no value."""
        if not isinstance(node, Scalar):
            kind = "a list" if isinstance(node, Sequence) else "keys with values"
            self.problem(node, f"expected {expects}, got {kind}")
            return None
        return self._substituted(node) if node.text.startswith(_ENV) and not node.env else node

    def _substituted(self, scalar: Scalar) -> Scalar | None:
        name = scalar.text.removeprefix(_ENV)
        if not _ENV_NAME.fullmatch(name):
            self.problem(scalar, "env: must be followed by the name of an environment variable and nothing else")
            return None
        if name not in self._environ:
            self.problem(scalar, f"environment variable {name} is not set")
            return None
        return replace(scalar, text=self._environ[name], plain=True, env=name)

    def declare(self, kind: str, name: str, node: Node) -> None:
        """Records a name that must be unique among its ``kind``."""
        first = self._declared.setdefault((kind, name), node)
        if first is not node:
            self.problem(node, f"duplicate {kind} name {quoted(name)} (first on line {first.line})")

    def declared(self, kind: str) -> frozenset[str]:
        """The names of a ``kind``."""
        return frozenset(name for owner, name in self._declared if owner == kind)

    def refer(self, name: str, node: Node) -> None:
        """Records that ``node`` names a backend."""
        self.referenced.add(name)
        self._references.append((name, node))

    def check_references(self, backends: frozenset[str]) -> None:
        """Records a problem for every reference to a backend that is not one of ``backends``."""
        for name, node in self._references:
            if name not in backends:
                self.problem(node, f"unknown backend {quoted(name)}{suggestion(name, sorted(backends))}")
