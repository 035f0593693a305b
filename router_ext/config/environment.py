"""Environment variables, and options of the command line, that stand above the file."""

from collections.abc import Mapping as Environ
from typing import Final

from router_ext.config.document import Mapping, Scalar

OVERRIDES: Final[dict[str, tuple[str, ...]]] = {
    "ROUTER_PORT": ("server", "port"),
    "SESSION_MAX_SIZE": ("server", "sessions", "max_sessions"),
    "SESSION_TTL_SECONDS": ("server", "sessions", "ttl"),
    "DPO_OUTPUT_PATH": ("quality_gate", "dpo_export", "output_path"),
}
"""The variables, and the keys whose value they replace."""


def overridden(root: Mapping, environ: Environ[str, str], workers: int | None = None) -> Mapping:
    """``root`` with the values of the variables that are set and not empty, to be read like the file's own.
    ``workers`` is the value of the option ``--workers``; None leaves ``server.workers`` as it is.
    """
    for name, keys in OVERRIDES.items():
        if environ.get(name):
            root = _with_value(root, keys, Scalar(f"env {name}", 0, environ[name], env=name))
    if workers is not None:
        root = _with_value(root, ("server", "workers"), Scalar("option --workers", 0, str(workers)))
    return root


def _with_value(mapping: Mapping, keys: tuple[str, ...], value: Scalar) -> Mapping:
    """A section that is something else than keys with values is left alone: its reader reports it."""
    key, below = keys[0], keys[1:]
    if not below:
        return _replaced(mapping, key, value)
    child = mapping.entries.get(key)
    if child is None or (isinstance(child, Scalar) and child.is_null):
        child = Mapping(f"{mapping.path}.{key}".lstrip("."), mapping.line)
    return _replaced(mapping, key, _with_value(child, below, value)) if isinstance(child, Mapping) else mapping


def _replaced(mapping: Mapping, key: str, node: Scalar | Mapping) -> Mapping:
    entries = {**mapping.entries, key: node}
    key_lines = {**mapping.key_lines, key: mapping.key_lines.get(key, mapping.line)}
    return Mapping(mapping.path, mapping.line, entries, key_lines)
