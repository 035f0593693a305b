"""From answers to figures."""

import json

from benchmarks.sessions.turns import Pair, content_of, figures
from benchmarks.sessions.wire import Answer


def answer(seconds: float, sent: int = 700, text: str = "Yes") -> Answer:
    """An answer with this text."""
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
    return Answer(200, {}, body, sent, seconds)


def test_the_ratio_is_that_of_the_medians_over_all_rounds() -> None:
    """Each round has its own ratio beside it."""
    rounds = [
        [Pair(answer(0.010), answer(0.020)), Pair(answer(0.012), answer(0.024)), Pair(answer(0.9), answer(0.1))],
        [Pair(answer(0.012), answer(0.024)), Pair(answer(0.012), answer(0.010))],
    ]
    seen = figures(rounds)
    assert seen["hydrated_p50_ms"] == 12.0
    assert seen["full_p50_ms"] == 24.0
    assert seen["hydrated_p50_ratio"] == 0.5
    assert seen["hydrated_p50_ratios"] == [0.5, 0.5]


def test_the_largest_upload_counts() -> None:
    """Of both ways."""
    pairs = [Pair(answer(1, 690), answer(1, 400_500)), Pair(answer(1, 720), answer(1, 400_100))]
    seen = figures([pairs])
    assert (seen["upload_bytes_max"], seen["upload_bytes_full"]) == (720, 400_500)


def test_turns_with_two_different_answers_are_counted() -> None:
    """The backend was sent another context then."""
    same, other = Pair(answer(1), answer(1)), Pair(answer(1, text="Yes"), answer(1, text="No"))
    assert figures([[same, other]])["other_answers"] == 1


def test_the_text_of_a_completion_is_read() -> None:
    """That of its first choice."""
    assert content_of(answer(1, text="Yes").body) == "Yes"
