"""A value that must not be seen: API keys and tokens."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """Holds a credential; ``str`` and ``repr`` show only that there is one.

    ``source`` says where it came from (``env:NAME`` or ``inline``) and may be printed.
    """

    _value: str
    source: str = "inline"

    def reveal(self) -> str:
        """The credential itself. Call it only where it goes on the wire."""
        return self._value

    def __repr__(self) -> str:
        return f"<secret from {self.source}>"

    __str__ = __repr__
