"""The answer that is compared with a shadow's, while its client gets it; and the memory that this takes."""

from router_ext.config.sections import AbTest
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.limits import KeptBytes
from router_ext.engine.shadow_compare import Side
from router_ext.model.shadow import ShadowResult
from router_ext.stream.effects import RelayBody, Relayed, RelayHead


class Place:
    """One of a test's places for a shadow, and the memory that it takes. ``free`` it once."""

    def __init__(self, test: AbTest, under_way: dict[str, int], memory: KeptBytes) -> None:
        self._test = test
        self._under_way = under_way
        self._memory = memory
        self._size = 0
        under_way[test.name] = under_way.get(test.name, 0) + 1

    def grow(self, size: int) -> bool:
        """Takes so many bytes more, if they are left."""
        if not self._memory.take(size):
            return False
        self._size += size
        return True

    def free(self) -> None:
        """Gives it back."""
        self._memory.give(self._size)
        self._under_way[self._test.name] -= 1


class Primary:
    """The answer that the client gets, as its parts pass. Of more than ``limit`` bytes nothing is kept."""

    def __init__(self, place: Place, limit: int) -> None:
        self._place = place
        self._limit = limit
        self._body = bytearray()
        self._status = 0
        self._fits = True
        self._ended_at: float | None = None

    def take(self, part: Relayed, now: float) -> None:
        """The next part; ``now`` is monotonic seconds."""
        match part:
            case RelayHead():
                self._status = part.status
            case RelayBody():
                self._keep(part.data)
                if part.end:
                    self._ended_at = now

    def _keep(self, data: bytes) -> None:
        if self._fits and len(self._body) + len(data) <= self._limit and self._place.grow(len(data)):
            self._body += data
        else:
            self._fits = False
            self._body.clear()

    def of(self, exchange: OpenExchange, test: AbTest) -> Side | ShadowResult:
        """The answer of variant A; else why there is none to compare with."""
        attempt, end = exchange.attempt, exchange.relayed
        if end is None or not end.whole or self._ended_at is None or not 200 <= self._status < 300:
            return ShadowResult.NO_PRIMARY
        if attempt.decision.backend != test.variant_a:
            return ShadowResult.NO_PRIMARY
        if not self._fits:
            return ShadowResult.DROPPED
        return Side(attempt.slot.state.backend, bytes(self._body), self._ended_at - attempt.started_at, end.usage)
