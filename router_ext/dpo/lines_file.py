"""A file of whole lines on a disk that may be full, and the full files beside it.

A line is written with one call, newline included. What a failed call or a crash left of a line is cut off before
anything else is written, so every line that a reader finds is whole.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router_ext.dpo.paths import rotated_at_us, rotated_path

_BLOCK_BYTES: Final = 65_536
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of a batch: how many lines are in the file and how many are not, and why not ("" when all are).
    ``torn_bytes`` of a line without an end were cut off before.
    """

    written: int
    dropped: int
    error: str
    torn_bytes: int


class LinesFile:
    """Appends to ``path``, which never grows beyond ``max_file_bytes``; with at most ``max_files`` (≥ 1) full files
    beside it. ``wall`` tells the seconds since the epoch.

    Calls block, and none may be made before another has returned. No other process may write to the file.
    """

    def __init__(self, path: Path, max_file_bytes: int, max_files: int, wall: Callable[[], float]) -> None:
        self._path = path
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files
        self._wall = wall
        self._fd: int | None = None

    def append(self, lines: Sequence[bytes]) -> Appended:
        """Writes lines, each with its newline and none longer than ``max_file_bytes``. Opens the file, also when there
        are no lines. After a failure the next call tries again.
        """
        written = torn_bytes = 0
        try:
            fd, torn_bytes = self._opened()
            while written < len(lines):
                if os.fstat(fd).st_size + len(lines[written]) > self._max_file_bytes:
                    self._rotate(fd)
                    fd, _ = self._opened()
                data = self._fitting(fd, lines, written)
                whole_bytes = self._write(fd, data)
                written += data.count(b"\n", 0, whole_bytes)
                if whole_bytes < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            return Appended(written, len(lines) - written, _cause(error), torn_bytes)
        return Appended(written, 0, "", torn_bytes)

    def close(self) -> None:
        """Closes the file, if it is open. What was said to be written does not depend on it."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):
                os.close(fd)

    def _opened(self) -> tuple[int, int]:
        """The open file, and how much of a torn line was cut off it. Opens it anew where it was removed or replaced."""
        if self._fd is not None and self._is_in_place(self._fd):
            return self._fd, 0
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = self._fd = os.open(self._path, flags, _FILE_MODE)
        try:
            os.fchmod(fd, _FILE_MODE)
            return fd, _cut_torn_line(fd)
        except OSError:
            self.close()
            raise

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.lstat(self._path))
        except FileNotFoundError:
            return False

    def _fitting(self, fd: int, lines: Sequence[bytes], first: int) -> bytes:
        """The line ``first`` and as many behind it as fit into the file."""
        room = self._max_file_bytes - os.fstat(fd).st_size
        end = first
        while end < len(lines) and (end == first or len(lines[end]) <= room):
            room -= len(lines[end])
            end += 1
        return b"".join(lines[first:end])

    def _write(self, fd: int, data: bytes) -> int:
        """Returns how many bytes, of whole lines, are in the file."""
        before = os.fstat(fd).st_size
        try:
            count = os.write(fd, data)
        except OSError:
            self._cut_back(fd, before)
            raise
        whole_bytes = data.rfind(b"\n", 0, count) + 1
        if whole_bytes < count:
            self._cut_back(fd, before + whole_bytes)
        return whole_bytes

    def _cut_back(self, fd: int, size: int) -> None:
        """A disk that refuses even this is asked again when the file is opened next."""
        try:
            os.ftruncate(fd, size)
        except OSError:
            self.close()

    def _rotate(self, fd: int) -> None:
        """Puts the full file beside the others, the oldest of which make room first: where they cannot be removed
        nothing more is written.
        """
        os.fsync(fd)
        full = self._full_files()
        for at_us in full[: max(0, len(full) - self._max_files + 1)]:
            rotated_path(self._path, at_us).unlink(missing_ok=True)
        target = self._reserved(max(round(self._wall() * 1e6), full[-1] + 1 if full else 0))
        try:
            os.replace(self._path, target)
        except OSError:
            target.unlink(missing_ok=True)
            raise
        self.close()
        _sync_folder(self._path.parent)

    def _full_files(self) -> list[int]:
        """The times of the full files, the oldest first. The last is never later than the next to come, whatever the
        clock says.
        """
        stamps = (rotated_at_us(self._path, name) for name in os.listdir(self._path.parent))
        return sorted(stamp for stamp in stamps if stamp is not None)

    def _reserved(self, at_us: int) -> Path:
        """A name that nobody has, taken by an empty file: a rename would replace a file of this name."""
        while True:
            path = rotated_path(self._path, at_us)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))
            except FileExistsError:
                at_us += 1
            else:
                return path


def _cut_torn_line(fd: int) -> int:
    """Cuts the file behind its last newline, looked for from the end. Returns how many bytes are gone."""
    size = start = os.fstat(fd).st_size
    keep = 0
    while start > 0 and not keep:
        block = min(_BLOCK_BYTES, start)
        start -= block
        newline = os.pread(fd, block, start).rfind(b"\n")
        keep = start + newline + 1 if newline >= 0 else 0
    if keep < size:
        os.ftruncate(fd, keep)
    return size - keep


def _sync_folder(folder: Path) -> None:
    """A name is on the disk only with its folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _cause(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
