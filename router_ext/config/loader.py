"""From ``router.yaml`` and the environment to a whole configuration, or to everything that is wrong with it."""

import hashlib
from collections.abc import Mapping as Environ
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router_ext.config import check
from router_ext.config.document import Mapping, compose
from router_ext.config.environment import overridden
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.reading import Reading
from router_ext.config.root import ROOT
from router_ext.config.sections import RouterConfig

__all__ = ["MAX_FILE_BYTES", "ConfigError", "LoadedConfig", "Problem", "load", "parse", "read_file"]

MAX_FILE_BYTES: Final = 4 * 2**20


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration, what is doubtful about it (sorted by line), and the SHA-256 of the file in hex."""

    config: RouterConfig
    warnings: tuple[Problem, ...]
    digest: str


def load(path: Path, environ: Environ[str, str], workers: int | None = None) -> LoadedConfig:
    """Reads and checks the file. Raises ConfigError with all problems, also when the file cannot be read.

    ``workers`` is the value of the option ``--workers``, which stands above ``server.workers``; None: it is not given.
    """
    return parse(read_file(path), path.name, path.parent, environ, workers)


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
    text: str | bytes, source: str, folder: Path, environ: Environ[str, str], workers: int | None = None
) -> LoadedConfig:
    """Checks a configuration. ``source`` names it in messages, relative paths in it are below ``folder``.

    ``workers`` is that of ``load``. Raises ConfigError with all problems.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    _refuse_large(content, source)
    document = compose(_decoded(content, source), source)
    reading = Reading(environ, folder.absolute())
    config = _read(overridden(document.root, environ, workers), reading)
    if config is None or reading.problems or document.problems:
        raise ConfigError(source, [*document.problems, *reading.problems])
    doubts = check.warnings(config, reading, lambda path: document.lines.get(path, 0))
    return LoadedConfig(
        config, tuple(sorted(doubts, key=lambda doubt: doubt.line)), hashlib.sha256(content).hexdigest()
    )


def _read(root: Mapping, reading: Reading) -> RouterConfig | None:
    config = ROOT.read(root, reading)
    check.check_references(root, reading)
    return check.with_fallback_chain(config, root, reading) if config else None


def _refuse_large(content: bytes, source: str) -> None:
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(source, [Problem("", 0, "the file is larger than 4 MiB")])


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(source, [Problem("", line, "the file is not UTF-8")]) from None
