"""The planned requests."""

from benchmarks.chaos.traffic import Planned, traffic


def test_requests_are_due_at_even_distances_from_the_start() -> None:
    """The schedule is fixed: no answer delays the next request."""
    assert [request.at_s for request in traffic(1.0, 4.0, seed=0)] == [0.0, 0.25, 0.5, 0.75]


def test_half_of_the_requests_are_streamed() -> None:
    """In random order, so that every fault meets both kinds."""
    kinds = [request.stream for request in traffic(10.0, 10.0, seed=3)]
    assert (len(kinds), sum(kinds)) == (100, 50)
    assert kinds[:50] != kinds[50:]


def test_the_same_seed_plans_the_same_requests_and_another_one_does_not() -> None:
    """A run can be repeated."""
    assert traffic(1.0, 10.0, seed=1) == traffic(1.0, 10.0, seed=1)
    assert traffic(1.0, 10.0, seed=1) != traffic(1.0, 10.0, seed=2)


def test_a_request_asks_for_twenty_tokens() -> None:
    """So that an answer's length tells whether it is whole."""
    assert Planned(0.0, stream=True, prompt="amber cloud").body == {
        "model": "sim",
        "messages": [{"role": "user", "content": "amber cloud"}],
        "max_tokens": 20,
        "stream": True,
    }
