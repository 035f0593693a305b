"""From ``router.yaml`` and the environment to a whole configuration, or to everything that is wrong with it."""

import hashlib
from collections.abc import Mapping as Environ
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from router_ext.config import check
from router_ext.config.changes import NO_CHANGES, NO_NAMES, Changes, FileNames
from router_ext.config.document import Document, Mapping, Sequence, compose
from router_ext.config.environment import overridden
from router_ext.config.overlay import Overlaid, overlaid
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.reading import Reading
from router_ext.config.root import ROOT
from router_ext.config.scalars import local_path
from router_ext.config.sections import DATA_DIR, RouterConfig

__all__ = ["MAX_FILE_BYTES", "ConfigError", "LoadedConfig", "Problem", "data_dir", "load", "parse", "read_file"]

MAX_FILE_BYTES: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration, what is doubtful about it (sorted by line), and the SHA-256 of the file in hex.

    ``in_file`` is what the file itself has, whatever was changed above it.
    """

    config: RouterConfig
    warnings: tuple[Problem, ...]
    digest: str
    in_file: FileNames = NO_NAMES

    def warnings_beside(self, other: "LoadedConfig") -> tuple[Problem, ...]:
        """Those that ``other`` does not have. A line that moved makes no other warning."""
        known = {(warning.path, warning.message) for warning in other.warnings}
        return tuple(warning for warning in self.warnings if (warning.path, warning.message) not in known)


def load(
    path: Path, environ: Environ[str, str], workers: int | None = None, *, changes: Changes = NO_CHANGES
) -> LoadedConfig:
    """Reads and checks the file. Raises ConfigError with all problems, also when the file cannot be read.

    ``workers`` is the value of the option ``--workers``, which stands above ``server.workers``; None: it is not given.
    ``changes`` stand above the file.
    """
    return parse(read_file(path), path.name, path.parent, environ, workers, changes=changes)


def read_file(path: Path) -> bytes:
    """The file's bytes. Raises ConfigError with one problem when it cannot be read or is over 4 MiB."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(path.name, [Problem("", 0, f"cannot be read: {error.strerror}")]) from None
    _refuse_large(content, path.name)
    return content


def parse(
    text: str | bytes,
    source: str,
    folder: Path,
    environ: Environ[str, str],
    workers: int | None = None,
    *,
    changes: Changes = NO_CHANGES,
) -> LoadedConfig:
    """Checks a configuration. ``source`` names it in messages, relative paths in it are below ``folder``.

    ``workers`` and ``changes`` are those of ``load``. Raises ConfigError with all problems.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    document = _document(content, source)
    reading = Reading(environ, folder.absolute())
    whole = overlaid(overridden(document.root, environ, workers), changes, environ)
    # A value that the API may not give is not read: it could name a variable.
    config = None if whole.problems else _read(whole.root, reading)
    if config is None or reading.problems or document.problems:
        raise ConfigError(source, [*document.problems, *whole.problems, *reading.problems])
    names = frozenset(backend.name for backend in config.backends)
    config = replace(config, drained=changes.drained & names)
    warnings = _warnings(config, reading, document, whole)
    return LoadedConfig(config, warnings, hashlib.sha256(content).hexdigest(), whole.names)


def _read(root: Mapping, reading: Reading) -> RouterConfig | None:
    config = ROOT.read(root, reading)
    check.check_references(root, reading)
    return check.with_fallback_chain(config, root, reading) if config else None


def data_dir(content: bytes, source: str, folder: Path, environ: Environ[str, str]) -> Path:
    """``server.data_dir`` of a file that may be wrong otherwise; the default where the setting itself is.

    ``source`` and ``folder`` are those of ``parse``. Raises ConfigError when the file is no YAML that can be read.
    """
    server = _document(content, source).root.entries.get("server")
    written = server.entries.get("data_dir") if isinstance(server, Mapping) else None
    found = local_path().read(written, Reading(environ, folder.absolute())) if written else None
    return found or folder.absolute() / DATA_DIR


def _warnings(config: RouterConfig, reading: Reading, document: Document, whole: Overlaid) -> tuple[Problem, ...]:
    places = _places(whole.root)
    doubts = check.warnings(config, reading, lambda path: places.get(path, (path, document.lines.get(path, 0))))
    return tuple(sorted((*whole.warnings, *doubts), key=lambda doubt: doubt.line))


def _places(root: Mapping) -> dict[str, tuple[str, int]]:
    """Where the items of lists are written, which are not where they stand once changes are above the file."""
    lists = ((key, node) for key, node in root.entries.items() if isinstance(node, Sequence))
    return {f"{key}[{index}]": (item.path, item.line) for key, node in lists for index, item in enumerate(node.items)}


def _document(content: bytes, source: str) -> Document:
    _refuse_large(content, source)
    return compose(_decoded(content, source), source)


def _refuse_large(content: bytes, source: str) -> None:
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(source, [Problem("", 0, "the file is larger than 4 MiB")])


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, [Problem("", line, "the file is not UTF-8")]) from None
