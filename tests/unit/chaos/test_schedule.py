"""When which backend fails."""

import pytest

from benchmarks.chaos.schedule import Action, Kill, Restart, Step, Switch, describe, steps
from router_ext.demo.sim.faults import NO_FAULTS, Faults


def test_a_full_run_meets_a_kill_errors_and_silence_one_after_the_other() -> None:
    """The times are those of the documentation."""
    assert steps(30.0) == (
        Step(5.0, Kill("a")),
        Step(12.0, Restart("a")),
        Step(14.0, Switch("b", Faults(status=503))),
        Step(19.0, Switch("b", NO_FAULTS)),
        Step(21.0, Switch("c", Faults(first_token_delay_s=10.0))),
        Step(26.0, Switch("c", NO_FAULTS)),
    )


def test_a_shorter_run_meets_the_same_faults_sooner() -> None:
    """All times scale, and so does the silence."""
    short = steps(12.0)
    assert [step.at_s for step in short] == pytest.approx([2.0, 4.8, 5.6, 7.6, 8.4, 10.4])
    silence = short[4].action
    assert isinstance(silence, Switch)
    assert silence.faults.first_token_delay_s == pytest.approx(4.0)


def test_the_health_page_is_good_while_requests_are_refused() -> None:
    """A probe must not be what takes the backend out."""
    refusing = steps(30.0)[2].action
    assert isinstance(refusing, Switch)
    assert (refusing.faults.health_status, refusing.faults.refuse) == (None, False)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Kill("a"), "a is killed"),
        (Restart("a"), "a is started again"),
        (Switch("b", Faults(status=503)), "b answers 503 to every request; its health page stays good"),
        (Switch("c", Faults(first_token_delay_s=2.5)), "c keeps back its first token for 2.5 s"),
        (Switch("c", NO_FAULTS), "c answers as usual"),
    ],
)
def test_every_action_is_told_in_words(action: Action, text: str) -> None:
    """The output of a run can be read beside the logs."""
    assert describe(action) == text
