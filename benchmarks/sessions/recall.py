"""Whether a stored session holds what its client was told is kept."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

Message = tuple[str, str]
"""Role and text."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A turn whose whole answer the client got."""

    user: str
    answer: str


@dataclass(frozen=True, slots=True)
class Recall:
    """What became of the turns of a session.

    ``lost``: acknowledged, and not stored with that answer. ``duplicates``: stored once more, from tries that were not
    acknowledged. ``foreign``: stored turns that this client never sent. ``disordered``: acknowledged turns that stand
    before an earlier one. ``malformed`` sessions are not user and assistant in turn.
    """

    acknowledged: int = 0
    lost: int = 0
    duplicates: int = 0
    foreign: int = 0
    disordered: int = 0
    malformed: int = 0

    def __add__(self, other: "Recall") -> "Recall":
        return Recall(
            self.acknowledged + other.acknowledged,
            self.lost + other.lost,
            self.duplicates + other.duplicates,
            self.foreign + other.foreign,
            self.disordered + other.disordered,
            self.malformed + other.malformed,
        )


def recall(messages: Sequence[Message], acknowledged: Sequence[Acknowledged], sent: Collection[str]) -> Recall:
    """Compares a stored session, without messages for one that is gone, with what its client was told, in the order of
    time. ``sent`` are the texts of all turns that it tried.
    """
    turns = [(user[1], answer[1]) for user, answer in zip(messages[::2], messages[1::2], strict=False)]
    stored = Counter(user for user, _ in turns)
    places = [turns.index(pair) for pair in ((turn.user, turn.answer) for turn in acknowledged) if pair in turns]
    return Recall(
        acknowledged=len(acknowledged),
        lost=len(acknowledged) - len(places),
        duplicates=sum(count - 1 for user, count in stored.items() if user in sent),
        foreign=sum(user not in sent for user, _ in turns),
        disordered=sum(later < earlier for earlier, later in pairwise(places)),
        malformed=int(not _is_well_formed([role for role, _ in messages])),
    )


def _is_well_formed(roles: Sequence[str]) -> bool:
    return len(roles) % 2 == 0 and all(role == ("user", "assistant")[at % 2] for at, role in enumerate(roles))
