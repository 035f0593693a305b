"""What the backends' caches hold, as far as the router can know: pins, corrected by what engines report."""

from collections.abc import Mapping

from msgspec import Struct

from router_ext.model.prefix import Prompt
from router_ext.routing.pins import PinTable
from router_ext.routing.reach import CacheReach


class Hold(Struct, frozen=True):
    """What one decision expected of the chosen backend's cache: ``matched`` of the prompt's size, 0 for nothing.

    ``depth`` is what the backend prefilled since it last used that prefix.
    """

    matched: int = 0
    depth: float = 0.0


class PrefixMemory:
    """The pins of all backends and the reach of each one's cache. ``now`` is seconds of any steady clock."""

    def __init__(self, ttl_s: float, max_entries: int) -> None:
        self._pins = PinTable(ttl_s, max_entries)
        self._reach: dict[str, CacheReach] = {}

    def __len__(self) -> int:
        """Entries in the table."""
        return len(self._pins)

    def resize(self, ttl_s: float, max_entries: int) -> None:
        """Takes over new limits; they hold for what is in the table, too."""
        self._pins.resize(ttl_s, max_entries)

    def match(self, prompt: Prompt, now: float, *, touches: bool = True) -> Mapping[str, int]:
        """For each backend the size of the longest prefix of ``prompt`` that its cache is expected to hold. Without
        ``touches`` the prefixes do not count as used.
        """
        return self._pins.match(prompt, now, touches=touches)

    def hold(self, prompt: Prompt, backend: str, matched: int) -> Hold:
        """What to remember of a decision until ``settle``. ``matched`` is what ``match`` gave for ``backend``, or 0."""
        reach = self._reach.get(backend)
        if not matched or reach is None:
            return Hold(matched)
        return Hold(matched, reach.depth(self._pins.last_use(prompt, backend, matched)))

    def serve(self, prompt: Prompt, backend: str, now: float) -> None:
        """``backend`` holds ``prompt`` now. Call it after success only: at the first token, and again at the end when
        the answer extends the prompt.
        """
        self._pins.insert(prompt, backend, now)

    def settle(self, prompt: Prompt, backend: str, hold: Hold, cached: float | None, now: float) -> bool:
        """A request ended well. ``cached`` is the part of ``prompt.size`` that the engine reports as cached, None when
        it reports nothing. Returns False, and drops the pin, when a predicted prefix was not there.
        """
        reach = self._reach.setdefault(backend, CacheReach())
        known = hold.matched if cached is None else cached
        reach.prefilled(max(0.0, prompt.size - known), now)
        kept = cached is None or reach.observe(hold.depth, hold.matched, cached)
        if not kept and cached is not None:
            self._pins.drop(prompt, backend, int(cached))
        self._pins.evicted_before(backend, reach.horizon())
        return kept

    def forget(self, backend: str) -> None:
        """The backend was restarted or removed, or changed its model: its cache is empty or of another size."""
        self._pins.forget(backend)
        self._reach.pop(backend, None)
