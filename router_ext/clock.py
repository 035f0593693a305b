"""The real clock."""

import time


class SystemClock:
    """Implements ``ports.Clock``."""

    def monotonic(self) -> float:
        """``time.monotonic``."""
        return time.monotonic()

    def wall(self) -> float:
        """``time.time``."""
        return time.time()
