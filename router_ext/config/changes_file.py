"""The file that keeps the changes of the admin API, shared by all workers of a router."""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from router_ext.config.changes import Changes, from_json, to_json
from router_ext.config.problem import ConfigError, Problem

NAME: Final = "changes.json"
"""In ``server.data_dir``."""

MAX_BYTES: Final = 4 * 2**20


class ChangesFileError(ConfigError):
    """What is on disk cannot be used, whatever anybody wants to change."""


class ChangesFile:
    """``changes.json`` in ``folder``; a missing file holds no changes. Everything here blocks."""

    def __init__(self, folder: Path) -> None:
        self.path: Final = folder / NAME
        self._lock = folder / f"{NAME}.lock"

    def content(self) -> bytes:
        """What the file holds, nothing when there is none. Raises ChangesFileError when it cannot be read."""
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from None
        if len(content) > MAX_BYTES:
            raise self._unusable("is larger than 4 MiB")
        return content

    def decoded(self, content: bytes) -> Changes:
        """The changes in a content of this file. Raises ChangesFileError."""
        try:
            return from_json(content, str(self.path))
        except ConfigError as error:
            raise ChangesFileError(error.source, error.problems) from None

    def encoded(self, changes: Changes) -> bytes:
        """The content for these changes. Raises ConfigError when they are too many."""
        content = to_json(changes)
        if len(content) > MAX_BYTES:
            raise ConfigError(str(self.path), [Problem("", 0, "all changes together would be larger than 4 MiB")])
        return content

    def replace(self, expected: bytes, content: bytes) -> bool:
        """Puts ``content`` in the place of ``expected``, durably and as a whole; nothing removes the file. False, with
        nothing done, when the file holds something else. Raises OSError and ConfigError.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.content() != expected:
                return False
            if content != expected:
                self._put(content)
        return True

    def set_aside(self) -> Path | None:
        """Renames the file to ``changes.json.discarded``, over an earlier one. None: there is none. Raises OSError."""
        target = self.path.with_name(f"{NAME}.discarded")
        try:
            self.path.replace(target)
        except FileNotFoundError:
            return None
        return target

    def _put(self, content: bytes) -> None:
        if content:
            self._write(content)
        else:
            self.path.unlink(missing_ok=True)
        _sync_folder(self.path.parent)

    def _write(self, content: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{NAME}.")
        try:
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise

    def _unusable(self, message: str) -> ChangesFileError:
        return ChangesFileError(str(self.path), [Problem("", 0, message)])


def _sync_folder(folder: Path) -> None:
    """A rename outlives a loss of power once its folder is on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
