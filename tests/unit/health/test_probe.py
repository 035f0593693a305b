"""Health after each probe."""

import pytest

from router_ext.health.probe import ProbeHistory, ProbeResult, next_delay_s, result_of_status
from router_ext.model.snapshot import Health

OK, ODD, FAILED = ProbeResult.OK, ProbeResult.ODD, ProbeResult.FAILED
SLOW, UNREACHABLE = ProbeResult.SLOW, ProbeResult.UNREACHABLE
HEALTHY, DEGRADED, DOWN = Health.HEALTHY, Health.DEGRADED, Health.DOWN


def _healths(*results: ProbeResult, answering: bool = False) -> list[Health]:
    history = ProbeHistory()
    return [history.add(result, answering=answering) for result in results]


@pytest.mark.parametrize(
    ("results", "healths"),
    [
        ([OK], [HEALTHY]),
        ([ODD], [DEGRADED]),
        ([FAILED], [DOWN]),
        ([SLOW], [DOWN]),
        ([UNREACHABLE], [DOWN]),
        ([OK, ODD], [HEALTHY, DEGRADED]),
        ([OK, FAILED, FAILED], [HEALTHY, DEGRADED, DOWN]),
        ([OK, SLOW, SLOW], [HEALTHY, DEGRADED, DOWN]),
        ([OK, FAILED, SLOW], [HEALTHY, DEGRADED, DOWN]),
        ([OK, UNREACHABLE], [HEALTHY, DOWN]),
        ([OK, FAILED, OK, FAILED], [HEALTHY, DEGRADED, HEALTHY, DEGRADED]),
        ([OK, FAILED, ODD, FAILED, FAILED], [HEALTHY, DEGRADED, DEGRADED, DEGRADED, DOWN]),
        ([OK, UNREACHABLE, FAILED, OK], [HEALTHY, DOWN, DOWN, HEALTHY]),
        ([FAILED, ODD, FAILED], [DOWN, DEGRADED, DEGRADED]),
    ],
)
def test_health_follows_the_last_probes(results: list[ProbeResult], healths: list[Health]) -> None:
    """Every backend starts down; two failures in a row, or no connection, take it down again."""
    assert _healths(*results) == healths


def test_slow_probes_of_an_answering_backend_never_take_it_down() -> None:
    """An engine at full load answers its probes late."""
    assert _healths(OK, SLOW, SLOW, SLOW, answering=True) == [HEALTHY, DEGRADED, DEGRADED, DEGRADED]


def test_server_errors_take_an_answering_backend_down() -> None:
    """Only lateness is excused."""
    assert _healths(OK, FAILED, FAILED, answering=True) == [HEALTHY, DEGRADED, DOWN]


def test_a_history_goes_on_from_a_known_health() -> None:
    """A backend that keeps its place over a reload is not down at its first failure."""
    history = ProbeHistory(HEALTHY)
    assert history.add(FAILED, answering=False) is DEGRADED


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (199, ODD),
        (200, OK),
        (204, OK),
        (399, OK),
        (400, ODD),
        (404, ODD),
        (428, ODD),
        (429, OK),
        (430, ODD),
        (499, ODD),
        (500, FAILED),
        (503, FAILED),
    ],
)
def test_a_status_is_read_as_life_or_failure(status: int, result: ProbeResult) -> None:
    """2xx, 3xx and 429 are good; other 4xx prove life; 5xx are failures."""
    assert result_of_status(status) is result


@pytest.mark.parametrize(
    ("health", "attempt", "delay_s"),
    [
        (HEALTHY, 0, 30.0),
        (HEALTHY, 7, 30.0),
        (DOWN, 0, 0.5),
        (DOWN, 1, 1.0),
        (DEGRADED, 5, 16.0),
        (DOWN, 6, 30.0),
        (DOWN, 100_000, 30.0),
    ],
)
def test_unhealthy_backends_are_probed_sooner(health: Health, attempt: int, delay_s: float) -> None:
    """From 0.5 s, doubling up to the interval."""
    assert next_delay_s(health, attempt, 30.0) == delay_s


def test_a_short_interval_bounds_the_backoff() -> None:
    """Never longer than while healthy."""
    assert next_delay_s(DOWN, 0, 0.1) == 0.1
