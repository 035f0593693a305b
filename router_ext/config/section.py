"""Readers of sections, lists and tables: a section is a table of fields over a dataclass.

The table is all there is to a section, so a reference of the configuration can be printed from it. A default stands
once, in the dataclass.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from typing import Final, Generic, Protocol, TypeVar

from router_ext.config.document import Mapping, Node, Scalar, Sequence
from router_ext.config.reading import Reading
from router_ext.config.scalars import ScalarReader
from router_ext.config.wording import plain_key, quoted, suggestion

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Values = dict[str, object]
"""Attributes of a section that are known: read, or by default. A field that was read and does not fit is missing."""

NO_VALUES: Final[Values] = {}


class Reader(Protocol[T_co]):
    """Reads one node. ``expects`` says in words what fits, to complete "expected …"."""

    @property
    def expects(self) -> str:
        """What fits."""

    def read(self, node: Node, reading: Reading, /) -> T_co | None:
        """The value, or None after recording a problem."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a section.

    ``doc`` is one line for the reference. ``attribute`` is the dataclass's name for it where that differs. ``required``
    is for a key that must be written although the dataclass has a default. ``default`` is text that is read in place
    of a missing key, for defaults that depend on the file's folder.
    """

    key: str
    reader: Reader[object]
    doc: str
    attribute: str = ""
    required: bool = False
    default: str = ""

    @property
    def name(self) -> str:
        """The dataclass's attribute."""
        return self.attribute or self.key

    def written(self, mapping: Mapping) -> Node | None:
        """The node of this key. A section or list without content counts as not written, a value never does."""
        node = mapping.entries.get(self.key)
        blank = isinstance(node, Scalar) and node.is_null and not isinstance(self.reader, ScalarReader)
        return None if blank else node


@dataclass(frozen=True, slots=True)
class Section(Generic[T_co]):
    """Keys with values that become one ``target``, a dataclass.

    ``relate`` sees the values of the fields before the target is built: it records what does not go together, and may
    add attributes that follow from others.
    """

    target: Callable[..., T_co]
    fields: tuple[Field, ...]
    relate: Callable[[Values, Mapping, Reading], None] | None = None

    @property
    def expects(self) -> str:
        """What fits."""
        return "keys with values"

    def read(self, node: Node, reading: Reading, fixed: Values = NO_VALUES) -> T_co | None:
        """The target, or None after recording problems. ``fixed`` are attributes that are no keys of the section."""
        if not isinstance(node, Mapping):
            _report_kind(node, reading, self.expects)
            return None
        before = len(reading.problems)
        self._refuse_unknown_keys(node, reading)
        values = defaults(self.target) | fixed
        for field in self.fields:
            _read_field(field, node, reading, values)
        if self.relate:
            self.relate(values, node, reading)
        return self.target(**values) if len(reading.problems) == before else None

    def _refuse_unknown_keys(self, mapping: Mapping, reading: Reading) -> None:
        known = [field.key for field in self.fields]
        for key, line in mapping.key_lines.items():
            if key not in known:
                child = Scalar(below(mapping, key), line, "")
                reading.problem(child, f"unknown key{suggestion(plain_key(key).rstrip('…'), known)}")


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """A list, each item read by ``item`` and different from the others unless it is a section."""

    item: Reader[T]
    into: Callable[[list[T]], object] = tuple
    min_items: int = 0

    @property
    def expects(self) -> str:
        """What fits."""
        return f"a list, each item {self.item.expects}"

    def read(self, node: Node, reading: Reading) -> object | None:
        """The items in order, or None after recording problems."""
        if not isinstance(node, Sequence):
            _report_kind(node, reading, "a list")
            return None
        before = len(reading.problems)
        values = [value for item in node.items if (value := self.item.read(item, reading)) is not None]
        if len(node.items) < self.min_items:
            reading.problem(node, "must not be empty")
        if len(values) == len(node.items) and isinstance(self.item, ScalarReader):
            _refuse_repeated(values, node, reading)
        return self.into(values) if len(reading.problems) == before else None


@dataclass(frozen=True, slots=True)
class Keyed(Generic[T]):
    """Sections under keys that the user chooses: each key is read by ``key`` and becomes ``attribute``."""

    key: ScalarReader[str]
    attribute: str
    section: Section[T]

    @property
    def expects(self) -> str:
        """What fits."""
        return f"sections, each under {self.key.expects}"

    def read(self, node: Node, reading: Reading) -> tuple[T, ...] | None:
        """The sections in the file's order, or None after recording problems."""
        if not isinstance(node, Mapping):
            _report_kind(node, reading, self.section.expects)
            return None
        read = [self._entry(node, key, child, reading) for key, child in node.entries.items()]
        whole = tuple(entry for entry in read if entry is not None)
        return whole if len(whole) == len(read) else None

    def _entry(self, mapping: Mapping, key: str, child: Node, reading: Reading) -> T | None:
        title = Scalar(child.path, mapping.key_lines[key], key, plain=False)
        name = self.key.read(title, reading)
        entry = self.section.read(child, reading, {self.attribute: name or ""})
        return entry if name is not None else None


def defaults(target: Callable[..., object]) -> Values:
    """The attributes of a dataclass that have defaults, with them."""
    found: Values = {}
    for field in dataclasses.fields(target):  # type: ignore[arg-type]  # a dataclass, which Callable cannot say
        if field.default is not MISSING:
            found[field.name] = field.default
        elif field.default_factory is not MISSING:
            found[field.name] = field.default_factory()
    return found


def below(mapping: Mapping, key: str) -> str:
    """The path of a key of ``mapping``."""
    return f"{mapping.path}.{plain_key(key)}" if mapping.path else plain_key(key)


def _read_field(field: Field, mapping: Mapping, reading: Reading, values: Values) -> None:
    node = field.written(mapping) or _absent(field, mapping, values)
    optional = field.name in values and not field.required
    value = field.reader.read(node, reading) if node else None
    if value is not None:
        values[field.name] = value
    elif node or not optional:
        values.pop(field.name, None)
    if node is None and not optional:
        reading.problem(Scalar(below(mapping, field.key), mapping.line, ""), "is required")


def _absent(field: Field, mapping: Mapping, values: Values) -> Node | None:
    """What to read for a missing key: a default that depends on the folder stands in the text or in a section below."""
    if field.default:
        return Scalar(below(mapping, field.key), mapping.line, field.default)
    if isinstance(field.reader, Section) and values.get(field.name) is not None:
        return Mapping(below(mapping, field.key), mapping.line)
    return None


def _report_kind(node: Node, reading: Reading, expects: str) -> None:
    got = "a list" if isinstance(node, Sequence) else "keys with values"
    if isinstance(node, Scalar):
        got = "nothing" if node.is_null else "a single value"
    reading.problem(node, f"expected {expects}, got {got}")


def _refuse_repeated(values: list[T], node: Sequence, reading: Reading) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            reading.problem(node.items[index], f"{quoted(str(value))} is listed twice")
