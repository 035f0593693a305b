"""What is sent, and by which configuration it is answered."""

import json
from pathlib import Path

from benchmarks.rig import SERVER
from benchmarks.sessions.wire import Answer
from benchmarks.shadow.stack import SETUP, Arm
from benchmarks.shadow.traffic import bodies, in_order
from router_ext.config.loader import load
from router_ext.config.sections import AbTest


def configured(folder: Path) -> dict[str, AbTest]:
    """The tests of the benchmark's configuration, as router_ext reads it."""
    ports = {"port": 1, "egress": 2, "admin": 3, "envoy_admin": 4}
    text = SERVER.format(**ports, folder=folder) + SETUP.config
    for number, name in enumerate(SETUP.backends, start=5):
        text = text.replace(f"{{{name}}}", str(number))
    path = folder / "router.yaml"
    path.write_text(text)
    return {test.name: test for test in load(path, {}).config.ab_tests}


def test_requests_are_plain_and_streamed_in_turn_and_no_two_are_alike() -> None:
    """Of about 1 KB each."""
    asked = bodies(seed=1, count=4)
    assert [json.loads(body)["stream"] for body in asked] == [False, True, False, True]
    assert len({json.loads(body)["messages"][0]["content"] for body in asked}) == 4
    assert all(900 < len(body) < 1300 for body in asked)


def test_a_seed_fixes_all_requests() -> None:
    """Each arm of a round is asked the same, and another round something else."""
    assert bodies(seed=1) == bodies(seed=1)
    assert not set(bodies(seed=1)) & set(bodies(seed=2))


def test_dealt_out_answers_are_put_in_the_order_of_their_requests() -> None:
    """Also where some connections had one more."""
    answers = [Answer(200, {}, str(number).encode(), 10, 0.1) for number in range(5)]
    assert in_order([answers[0::2], answers[1::2]]) == answers


def test_every_arm_has_a_test_of_its_own_and_one_of_them_is_switched_off(tmp_path: Path) -> None:
    """They are drawn from alike, and all are answered by the same backend."""
    tests = configured(tmp_path)
    assert {test.match.service: test.active for test in tests.values()} == {
        "inactive": False,
        "healthy": True,
        "hung": True,
        "full": True,
    }
    assert {(test.mode, test.split_pct, test.variant_a) for test in tests.values()} == {("shadow", 20.0, "large")}


def test_only_one_arm_is_short_of_places(tmp_path: Path) -> None:
    """By the default of ``max_inflight``; the other one that hangs has room for every request of a run."""
    tests = configured(tmp_path)
    assert (tests[Arm.FULL].variant_b, tests[Arm.FULL].max_inflight) == ("silent", 32)
    assert (tests[Arm.HUNG].variant_b, tests[Arm.HUNG].max_inflight) == ("silent", 5000)
