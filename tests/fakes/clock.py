"""A clock that stands still until it is told to go on."""

from dataclasses import dataclass


@dataclass(slots=True)
class FakeClock:
    """Implements ``ports.Clock``. ``now_s`` is the monotonic time; ``step_s`` passes after every look at it."""

    now_s: float = 1000.0
    wall_s: float = 1_700_000_000.0
    step_s: float = 0.0

    def monotonic(self) -> float:
        """The time, which then goes on by ``step_s``."""
        now = self.now_s
        self.advance(self.step_s)
        return now

    def wall(self) -> float:
        """Seconds since the epoch; moves along with the monotonic time."""
        return self.wall_s

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.now_s += seconds
        self.wall_s += seconds
