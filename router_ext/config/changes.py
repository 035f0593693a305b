"""What the admin API has changed, which stands above the file.

Specs are the JSON objects that would stand in ``router.yaml``, with the same keys; ``config.overlay`` reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeVar

import msgspec
import orjson

from router_ext.config.problem import ConfigError, Problem

VERSION: Final = 1
"""Of the form in which changes are kept."""

Spec = Mapping[str, Any]
"""One backend, rule or budget as a JSON object."""

Specs = Mapping[str, Spec | None]
"""Specs by name, in the order in which they came; None takes what the file has of that name away."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileNames:
    """What the file itself holds, by name; budgets by service."""

    backends: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()
    budgets: frozenset[str] = frozenset()


NO_NAMES: Final = FileNames()


@dataclass(frozen=True, slots=True)
class Changes:
    """Edits return another value and keep specs as they are: whoever reads the configuration checks them. What is
    inside of a spec must stay as it is.

    ``budgets`` are by service. A spec of a backend or rule has the name it is kept by, whatever it said. ``drained``
    are names of backends; one that is no backend means nothing.
    """

    backends: Specs = field(default_factory=dict)
    rules: Specs = field(default_factory=dict)
    budgets: Specs = field(default_factory=dict)
    drained: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """False where nothing is changed."""
        return bool(self.backends or self.rules or self.budgets or self.drained)

    def with_backend(self, name: str, spec: Spec) -> Self:
        """One backend more, or in place of the one of that name."""
        return replace(self, backends=_with(self.backends, name, _named(name, spec)))

    def without_backend(self, name: str) -> Self:
        """Without this backend, which is then not drained either."""
        return replace(self, backends=_with(self.backends, name, None), drained=self.drained - {name})

    def with_rule(self, name: str, spec: Spec) -> Self:
        """One rule more, after all others, or in the place of the one of that name."""
        return replace(self, rules=_with(self.rules, name, _named(name, spec)))

    def without_rule(self, name: str) -> Self:
        """Without this rule."""
        return replace(self, rules=_with(self.rules, name, None))

    def with_budget(self, service: str, spec: Spec) -> Self:
        """A budget for the service, in place of any other."""
        return replace(self, budgets=_with(self.budgets, service, dict(spec)))

    def without_budget(self, service: str) -> Self:
        """The service has the file's budget again, or none where the file has none."""
        return replace(self, budgets=_without(self.budgets, {service}))

    def with_drained(self, name: str) -> Self:
        """The backend gets no new requests."""
        return replace(self, drained=self.drained | {name})

    def without_drained(self, name: str) -> Self:
        """The backend gets requests again."""
        return replace(self, drained=self.drained - {name})

    def above(self, names: FileNames) -> Self:
        """The same above a file with these ``names``: what is taken away, but is not in the file, leaves no trace."""
        return replace(
            self,
            backends=_without(self.backends, _gone(self.backends) - names.backends),
            rules=_without(self.rules, _gone(self.rules) - names.rules),
            budgets=_without(self.budgets, _gone(self.budgets) - names.budgets),
        )


NO_CHANGES: Final = Changes()
"""The file as it is."""


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    backends: dict[str, dict[str, Any] | None] = {}
    rules: dict[str, dict[str, Any] | None] = {}
    budgets: dict[str, dict[str, Any] | None] = {}
    drained: list[str] = []


def to_json(changes: Changes) -> bytes:
    """What a file keeps of ``changes``: nothing where nothing is changed. Equal changes give equal bytes.

    Raises ConfigError for a spec that JSON cannot hold.
    """
    if not changes:
        return b""
    kept = {
        "version": VERSION,
        "backends": dict(changes.backends),
        "rules": dict(changes.rules),
        "budgets": dict(changes.budgets),
        "drained": sorted(changes.drained),
    }
    try:
        return orjson.dumps(kept, option=orjson.OPT_INDENT_2) + b"\n"
    except orjson.JSONEncodeError as error:
        raise ConfigError("", [Problem("", 0, f"a change is no JSON: {error}")]) from None


def from_json(content: bytes, source: str) -> Changes:
    """The changes that ``to_json`` gave; ``source`` names the file in messages. Raises ConfigError."""
    if not content:
        return NO_CHANGES
    try:
        version = msgspec.json.decode(content, type=dict[str, Any]).get("version")
        if version != VERSION:
            raise ConfigError(source, [Problem("", 0, _unknown(version))])
        kept = msgspec.json.decode(content, type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(source, [Problem("", 0, f"is broken: {error}; {_WAY_OUT}")]) from None
    return Changes(_all_named(kept.backends), _all_named(kept.rules), kept.budgets, frozenset(kept.drained))


_WAY_OUT: Final = "mend it, or set it aside with router-ext serve --discard-changes"


def _unknown(version: object) -> str:
    if not isinstance(version, int):
        return f"has no version; {_WAY_OUT}"
    return f"has version {version}, and this router knows version {VERSION} only; {_WAY_OUT}"


def _named(name: str, spec: Spec) -> dict[str, Any]:
    return {"name": name, **{key: value for key, value in spec.items() if key != "name"}}


def _all_named(specs: Mapping[str, dict[str, Any] | None]) -> Specs:
    return {name: None if spec is None else _named(name, spec) for name, spec in specs.items()}


def _with(specs: Mapping[str, T], name: str, spec: T) -> dict[str, T]:
    return {**specs, name: spec}


def _without(specs: Mapping[str, T], names: set[str] | frozenset[str]) -> dict[str, T]:
    return {name: spec for name, spec in specs.items() if name not in names}


def _gone(specs: Specs) -> frozenset[str]:
    return frozenset(name for name, spec in specs.items() if spec is None)
