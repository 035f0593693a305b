"""Which backends hold which prefixes: a bounded table of what each engine has served.

It follows the engines' own caches: what was used last stays longest, and of one prompt the short prefixes, which
others share, outlive the long ones. No clock: ``now`` is seconds of any steady clock, never going back.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from router_ext.model.prefix import Prompt

MAX_HOLDERS: Final = 64
"""Most backends of one entry; the one whose last use is oldest makes room. A prefix that all clients share has to be
known wherever it is, or the few backends that are known to hold it get all the requests: with six holders in a cluster
of 64, ten times the mean.
"""

HOLDS_PER_ENTRY: Final = 6
"""Most holds of the table for each entry that it may have: a few entries may have many holders, not all of them. It
bounds 100,000 entries to 58 MB (``python -m benchmarks.prefix``).
"""


class _Owner:
    """One life of a backend. After ``forget`` the name belongs to another owner, and entries of this one are void.

    ``since`` is the earliest use that its cache may still hold.
    """

    __slots__ = ("name", "since")

    def __init__(self, name: str) -> None:
        self.name = name
        self.since = -math.inf


class _Use(Struct, frozen=True, gc=False):
    """The last use of an entry by a backend. One object serves all the boundaries of a prompt."""

    owner: _Owner
    at: float


_Uses = tuple[_Use, ...]
_NOBODY: Final[_Uses] = ()


class PinTable:
    """Entries by boundary, each with the backends that hold it.

    A backend's hold on an entry ends ``ttl_s`` seconds after it last served that prefix. Of more than ``max_entries``
    entries the least recently used go first. Costs are O(1) a boundary; ``forget`` is O(1). Used from one thread.
    """

    def __init__(self, ttl_s: float, max_entries: int) -> None:
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, _Uses] = OrderedDict()
        self._owners: dict[str, _Owner] = {}
        self._holds = 0

    def __len__(self) -> int:
        """Entries in the table. Those that nothing can match any more count until they are met or pushed out."""
        return len(self._entries)

    def insert(self, prompt: Prompt, backend: str, now: float) -> None:
        """Notes that ``backend`` has served ``prompt``: call it after success only."""
        use = _Use(self._owners.setdefault(backend, _Owner(backend)), now)
        before, after = _NOBODY, self._joined(_NOBODY, use)
        for boundary in reversed(prompt.boundaries):
            uses = self._entries.get(boundary.key, _NOBODY)
            # Neighbours mostly have the same history: they share one tuple, which saves memory and time.
            if uses is not before:
                before, after = uses, self._joined(uses, use)
            self._entries[boundary.key] = after
            self._holds += len(after) - len(uses)
            self._entries.move_to_end(boundary.key)
        self._trim(now)

    def match(self, prompt: Prompt, now: float, *, touches: bool = True) -> Mapping[str, int]:
        """For each backend the size of the longest prefix that it holds, longest first; among equals the latest use
        first. Backends that hold nothing are missing. The entries of these prefixes count as used, but no backend's
        hold lasts longer for it; without ``touches`` the table stays as it is.
        """
        found: dict[str, int] = {}
        seen = _NOBODY
        for boundary in reversed(prompt.boundaries):
            uses = self._entries.get(boundary.key, _NOBODY)
            if uses is _NOBODY or uses is seen:
                continue
            known = len(found)
            living = self._living(boundary.key, uses, now, removes=touches)
            seen = uses if len(living) == len(uses) else _NOBODY
            for use in reversed(living):
                found.setdefault(use.owner.name, boundary.size)
            if touches and len(found) > known:
                self._entries.move_to_end(boundary.key)
            if len(found) == len(self._owners):
                break
        return found

    def drop(self, prompt: Prompt, backend: str, beyond: int) -> None:
        """Forgets that ``backend`` holds prefixes of ``prompt`` longer than ``beyond`` bytes of text."""
        owner = self._owners.get(backend)
        for boundary in prompt.boundaries:
            if boundary.size > beyond:
                uses = self._entries.get(boundary.key, ())
                self._put(boundary.key, uses, tuple(use for use in uses if use.owner is not owner))

    def forget(self, backend: str) -> None:
        """Forgets everything that ``backend`` holds, at once: it was restarted or removed, or changed its model."""
        owner = self._owners.pop(backend, None)
        if owner is not None:
            owner.since = math.inf

    def evicted_before(self, backend: str, at: float) -> None:
        """What ``backend`` last used before ``at`` is out of its cache."""
        owner = self._owners.get(backend)
        if owner is not None:
            owner.since = at

    def last_use(self, prompt: Prompt, backend: str, size: int) -> float:
        """When ``backend`` last served the prefix of ``size``; -inf when it does not hold it."""
        key = next((boundary.key for boundary in prompt.boundaries if boundary.size == size), b"")
        uses = self._entries.get(key, _NOBODY)
        return next((use.at for use in uses if use.owner.name == backend), -math.inf)

    def resize(self, ttl_s: float, max_entries: int) -> None:
        """Takes over new limits; they hold for what is in the table, too."""
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._shrink()

    def _joined(self, uses: _Uses, use: _Use) -> _Uses:
        others = tuple([other for other in uses if other.owner is not use.owner and other.at >= other.owner.since])
        return (*others[1 - MAX_HOLDERS :], use)

    def _living(self, key: bytes, uses: _Uses, now: float, *, removes: bool = True) -> _Uses:
        """The uses of an entry that still count, oldest first; the others are removed."""
        living = tuple(use for use in uses if self._counts(use, now))
        if removes:
            self._put(key, uses, living)
        return living

    def _put(self, key: bytes, uses: _Uses, left: _Uses) -> None:
        self._holds += len(left) - len(uses)
        if left and len(left) < len(uses):
            self._entries[key] = left
        elif uses and not left:
            del self._entries[key]

    def _counts(self, use: _Use, now: float) -> bool:
        return use.at >= use.owner.since and now - use.at < self._ttl_s

    def _trim(self, now: float) -> None:
        """Removes entries at the old end that nothing can match, then those above the limit."""
        while self._entries and not self._living(*next(iter(self._entries.items())), now):
            pass
        self._shrink()

    def _shrink(self) -> None:
        most_holds = self._max_entries * HOLDS_PER_ENTRY
        while len(self._entries) > self._max_entries or self._holds > most_holds:
            _, uses = self._entries.popitem(last=False)
            self._holds -= len(uses)
