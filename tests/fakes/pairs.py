"""A sink of preference pairs that keeps them."""

from dataclasses import dataclass, field

from router_ext.ports import Rescue


@dataclass(slots=True)
class KeptPairs:
    """Implements ``ports.PairSink``."""

    rescues: list[Rescue] = field(default_factory=list)

    def offer(self, rescue: Rescue) -> None:
        """Keeps it."""
        self.rescues.append(rescue)

    def texts(self) -> list[tuple[str | None, str | None]]:
        """Of each rescue the first choices' texts: rejected, chosen."""
        return [(rescue.rejected.choices[0].text, rescue.chosen.choices[0].text) for rescue in self.rescues]
