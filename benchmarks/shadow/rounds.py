"""The same requests under each test in turn: when their answers are over, and whether they are the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks.load import quantile
from benchmarks.sessions.wire import Answer, Wire
from benchmarks.shadow.stack import Arm
from benchmarks.shadow.traffic import bodies, stretch

ROUNDS: Final = 5
STRETCHES: Final = 3
"""Of each arm in a round: what else the machine does for a second is to meet all arms alike."""

_SHADOWED: Final = tuple(arm for arm in Arm if arm is not Arm.INACTIVE)


@dataclass(frozen=True, slots=True)
class Round:
    """The p99 of each arm in seconds, the answers that an arm with shadows brought, and how many of these had other
    bytes than without.
    """

    p99_s: Mapping[Arm, float]
    compared: int
    different: int


async def measure(wires: Sequence[Wire], say: Callable[[str], None]) -> list[Round]:
    """Arms alternate within each round."""
    rounds = []
    for number in range(ROUNDS):
        rounds.append(round_of(await _answers(wires, number)))
        say("  " + ", ".join(f"{arm} {rounds[-1].p99_s[arm] * 1000:.1f} ms" for arm in Arm))
    return rounds


async def _answers(wires: Sequence[Wire], number: int) -> dict[Arm, list[Answer]]:
    answers: dict[Arm, list[Answer]] = {arm: [] for arm in Arm}
    for seed in range(number * STRETCHES, (number + 1) * STRETCHES):
        asked = bodies(seed)
        for arm in turned(seed):
            answers[arm] += await stretch(wires, asked, arm)
    return answers


def turned(number: int) -> list[Arm]:
    """All arms, of which each comes first in turn, so that none has always the same place."""
    arms = list(Arm)
    at = number % len(arms)
    return arms[at:] + arms[:at]


def round_of(answers: Mapping[Arm, Sequence[Answer]]) -> Round:
    """From the answers of each arm to the same requests, in the same order."""
    p99_s = {arm: quantile(sorted(answer.seconds for answer in given), 0.99) for arm, given in answers.items()}
    pairs = [pair for arm in _SHADOWED for pair in zip(answers[Arm.INACTIVE], answers[arm], strict=True)]
    return Round(p99_s, len(pairs), sum(without.body != shadowed.body for without, shadowed in pairs))


def figures(rounds: Sequence[Round]) -> dict[str, Any]:
    """Of ratios and of differences in milliseconds the median over the rounds, each against its own round."""
    figures: dict[str, Any] = {"p99_ms_inactive": _ms(median(each.p99_s[Arm.INACTIVE] for each in rounds))}
    for arm in _SHADOWED:
        ratios = [each.p99_s[arm] / each.p99_s[Arm.INACTIVE] for each in rounds]
        added_s = [each.p99_s[arm] - each.p99_s[Arm.INACTIVE] for each in rounds]
        figures[f"p99_ratio_{arm}_shadow"] = round(median(ratios), 3)
        figures[f"p99_ratio_{arm}_shadow_rounds"] = [round(ratio, 3) for ratio in ratios]
        figures[f"p99_added_ms_{arm}_shadow"] = _ms(median(added_s))
    different = sum(each.different for each in rounds)
    compared = sum(each.compared for each in rounds)
    return figures | {"bytes_equal": different == 0, "answers_compared": compared, "answers_different": different}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
