"""What the workers of one router have in flight, each by itself and all of them together, in a file that they share.

Each worker has a row of its own that nobody else writes, and reads the rows of the others: there are no locks. A row is
an array of words of 8 bytes on their own addresses, which the machine reads and writes as a whole. So a count is never
seen half written, but it may be older than one beside it.

A row tells its backends apart by a digest, whose place in its directory is that of the backend's figures. The directory
changes with the configuration only. It is sealed by a digest of itself: one that is half written does not fit its seal,
and readers stay with the one they know until it does, which takes 0.1 ms. Places do not move while their backend is
configured or has requests in flight, so what they know stays right.

    file   magic, 7 words of nothing; then the rows
    row    seal (0: an empty row), ends a second, 6 words of nothing; directory of 16 bytes a backend; counts

The ends a second are a floating point number, seals and counts are whole ones, all as this machine has them.
"""

import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from router_ext.model.backend import Backend

MAX_BACKENDS: Final = 1024
"""Backends that have a place in a row. One more is counted by each worker alone."""

_MAGIC: Final = b"rx-tally"
_WORD: Final = 8
_KEY_BYTES: Final = 16
_HEADER: Final = 8
"""Words before the rows, and in each row before its directory: a cache line."""

_COUNTS: Final = _HEADER + MAX_BACKENDS * _KEY_BYTES // _WORD
_ROW: Final = _COUNTS + MAX_BACKENDS
"""Words from the start of a row to its counts, and to its end."""

_FREE: Final = bytes(_KEY_BYTES)


def backend_key(backend: Backend) -> bytes:
    """The digest (16 bytes) of name and endpoint: another endpoint under the same name is another backend."""
    return blake2b(f"{backend.name}\0{backend.endpoint}".encode(), digest_size=_KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class _Directory:
    """What a worker's row holds as it was read last: the word in the file of each backend's count."""

    seal: int = 0
    places: Mapping[bytes, int] = field(default_factory=dict)


_EMPTY: Final = _Directory()


class Tally:
    """One process's view of the file: a worker's, or that of the supervisor, which has no row and only reads.

    Keys are those of ``backend_key``. ``add`` takes 0.15 µs, ``others`` 0.13 µs and 0.07 µs for each other worker.
    """

    def __init__(self, memory: mmap.mmap, workers: int, worker: int | None) -> None:
        self._memory = memory
        self._words = memoryview(memory).cast("Q")
        self._rates = memoryview(memory).cast("d")
        self._workers = workers
        self._worker = worker
        self._own: dict[bytes, int] = {}
        self._places: dict[bytes, int] = {}
        self._directories = {_start(index): _EMPTY for index in range(workers) if index != worker}
        self._seals = [(start, 0) for start in self._directories]
        self._elsewhere: dict[bytes, list[int]] = {}

    @classmethod
    def create(cls, path: Path, workers: int) -> "Tally":
        """A new file for ``workers`` (≥ 1) workers, as their supervisor sees it; only this user may open it.

        Raises FileExistsError where there is one.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(descriptor, _start(workers) * _WORD)
            tally = cls(mmap.mmap(descriptor, 0), workers, None)
        finally:
            os.close(descriptor)
        tally._memory[: len(_MAGIC)] = _MAGIC
        return tally

    @classmethod
    def open(cls, path: Path, worker: int) -> "Tally":
        """The file as ``worker`` (from 0) sees it, whose row is emptied: a process that takes the place of another has
        nothing in flight.

        Raises OSError where there is no file, and ValueError when it is no tally or has no such row.
        """
        descriptor = os.open(path, os.O_RDWR)
        try:
            memory = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        workers = (len(memory) // _WORD - _HEADER) // _ROW
        if memory[: len(_MAGIC)] != _MAGIC or len(memory) != _start(workers) * _WORD or not 0 <= worker < workers:
            memory.close()
            raise ValueError(f"{path} is no tally with a row for worker {worker}")
        tally = cls(memory, workers, worker)
        tally.clear(worker)
        return tally

    def close(self) -> None:
        """Ends the use of it. The row of a worker is emptied."""
        if self._worker is not None:
            self.clear(self._worker)
        self._words.release()
        self._rates.release()
        self._memory.close()

    def clear(self, worker: int) -> None:
        """Empties the row of a worker, which has died: nothing of it is in flight any more."""
        if not 0 <= worker < self._workers:
            raise ValueError(f"there is no worker {worker} of {self._workers}")
        start = _start(worker)
        self._words[start] = 0
        self._memory[(start + 1) * _WORD : (start + _ROW) * _WORD] = bytes((_ROW - 1) * _WORD)

    # The worker's own row

    def claim(self, keys: Iterable[bytes]) -> list[bytes]:
        """Gives each of these backends, which are the configured ones, a place in the worker's row.

        Any other backend loses its place, once it has nothing in flight. Returns those for which there is no place:
        other workers do not see their requests until a later claim finds one.
        """
        wanted, counts = dict.fromkeys(keys), self._row + _COUNTS
        self._own = {key: count for key, count in self._own.items() if count}
        kept = {key: place for key, place in self._places.items() if key in wanted or key in self._own}
        taken = set(kept.values())
        free = [place for place in range(counts, counts + MAX_BACKENDS) if place not in taken]
        new = [key for key in wanted if key not in kept]
        added = dict(zip(new, free, strict=False))
        self._places = kept | added
        self._write_directory()
        for key, place in added.items():
            self._words[place] = self._own.get(key, 0)
        return new[len(added) :]

    def _write_directory(self) -> None:
        """The directory, and after it the seal: who reads both in between sees that they do not fit."""
        directory, counts = bytearray(MAX_BACKENDS * _KEY_BYTES), self._row + _COUNTS
        for key, place in self._places.items():
            at = (place - counts) * _KEY_BYTES
            directory[at : at + _KEY_BYTES] = key
        self._memory[(self._row + _HEADER) * _WORD : counts * _WORD] = bytes(directory)
        self._words[self._row] = _seal(bytes(directory))

    def add(self, key: bytes, change: int) -> None:
        """Counts so many requests more (or less) in flight at a backend."""
        count = self._own.get(key, 0) + change
        self._own[key] = count
        place = self._places.get(key)
        if place is not None:
            self._words[place] = count

    def tell_ended(self, per_s: float) -> None:
        """How many exchanges a second have ended here lately (≥ 0). It stands until the next time."""
        self._rates[self._row + 1] = per_s

    @property
    def _row(self) -> int:
        if self._worker is None:
            raise RuntimeError("the supervisor's view of a tally has no row")
        return _start(self._worker)

    # The rows of the others

    def others(self, key: bytes) -> int:
        """Requests that all other workers have in flight at a backend, at this instant."""
        words, count = self._words, 0
        for place in self._elsewhere.get(key, ()):
            count += words[place]
        # Looked at after the counts: in a directory that is still the known one they are this backend's.
        for start, seal in self._seals:
            if words[start] != seal and self._learn():
                return self.others(key)
        return count

    def others_ended(self) -> float:
        """How many exchanges a second have ended at all other workers, as they told last."""
        return sum([self._rates[start + 1] for start in self._directories])

    def _learn(self) -> bool:
        """Takes over the directories that have changed. False when there are none, or they are being written."""
        changed = False
        for start, known in self._directories.items():
            if self._words[start] != known.seal and (directory := self._read(start)) is not None:
                self._directories[start], changed = directory, True
        if changed:
            self._seals = [(start, directory.seal) for start, directory in self._directories.items()]
            self._elsewhere = {}
            for directory in self._directories.values():
                for key, place in directory.places.items():
                    self._elsewhere.setdefault(key, []).append(place)
        return changed

    def _read(self, start: int) -> _Directory | None:
        """The directory of the row that begins there, None while it is being written."""
        seal = self._words[start]
        if not seal:
            return _EMPTY
        written = self._memory[(start + _HEADER) * _WORD : (start + _COUNTS) * _WORD]
        if _seal(written) != seal:
            return None
        keys = (written[at : at + _KEY_BYTES] for at in range(0, len(written), _KEY_BYTES))
        return _Directory(seal, {key: start + _COUNTS + place for place, key in enumerate(keys) if key != _FREE})


def _start(worker: int) -> int:
    return _HEADER + worker * _ROW


def _seal(directory: bytes) -> int:
    return int.from_bytes(blake2b(directory, digest_size=_WORD).digest(), "little")
