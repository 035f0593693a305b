"""A configuration as JSON to be shown: the keys of ``router.yaml``, every default written out, and no secret."""

from collections.abc import Set
from enum import Enum
from typing import Any, Final

from router_ext.config.root import ROOT
from router_ext.config.section import Items, Keyed, Section
from router_ext.config.sections import RouterConfig
from router_ext.model.backend import Backend
from router_ext.model.secret import Secret

MASK: Final = "***"
"""In the place of a secret that stands in the file. One from the environment is shown as ``env:NAME``."""

Json = dict[str, Any]


def masked(config: RouterConfig) -> Json:
    """``config`` with durations in seconds and sizes in bytes; what is not set and has no default is left out.

    Read as a file it gives the same configuration again, but for masked secrets and what is drained.
    """
    return _section(ROOT, config)


def masked_path(path: str) -> str:
    """A path with ``***`` in the place of its query, which may be a credential."""
    bare, mark, query = path.partition("?")
    return f"{bare}{mark}{MASK}" if query else path


def _section(section: Section[Any], value: object) -> Json:
    shown = ((field.key, _shown(field.reader, getattr(value, field.name))) for field in section.fields)
    known = {key: item for key, item in shown if item is not None}
    return {**known, "health_endpoint": masked_path(value.health_endpoint)} if isinstance(value, Backend) else known


def _shown(reader: object, value: Any) -> Any:
    match reader:
        case _ if value is None:
            return None
        case Section():
            return _section(reader, value)
        case Items(item=Section() as section):
            return [_section(section, item) for item in value]
        case Keyed():
            return {getattr(item, reader.attribute): _section(reader.section, item) for item in value}
        case _:
            return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case Secret():
            return value.source if value.source.startswith("env:") else MASK
        case Set() | tuple():
            return sorted(value) if isinstance(value, Set) else list(value)
        case Enum():
            return value.value
        case bool() | int() | float():
            return value
        case _:
            return str(value)
