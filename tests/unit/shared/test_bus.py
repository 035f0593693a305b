"""The bus without a server: publishing never waits, and a wrong URL is told at once."""

import pytest

from router_ext.config.sections import Server, Sessions, SharedStateKind
from router_ext.model.secret import Secret
from router_ext.model.shared import CircuitChanged
from router_ext.ports import ALONE
from router_ext.shared.build import build_bus
from router_ext.shared.bus import RedisBus
from tests.fakes.telemetry import RecordingTelemetry

OPENED = CircuitChanged("a", "http://a:8000", is_open=True)
SESSIONS = Sessions(redis_url=Secret("redis://nobody.invalid"))


@pytest.mark.parametrize(("count", "dropped"), [(1024, []), (1025, [1]), (1030, [1] * 6)])
def test_more_events_than_fit_push_out_the_oldest_and_are_counted(count: int, dropped: list[int]) -> None:
    """A server that is away costs a bounded amount of memory, and no request its time."""
    telemetry = RecordingTelemetry()
    bus = RedisBus(Secret("redis://nobody.invalid"), telemetry, sender="me")
    for _ in range(count):
        bus.publish(OPENED)
    assert telemetry.events_dropped == dropped
    assert telemetry.events_published == []


def test_a_url_that_the_client_does_not_know_is_refused_without_its_password() -> None:
    """Before anything is served."""
    with pytest.raises(ValueError, match="inline") as error:
        RedisBus(Secret("redis://:hunter2@h?nonsense=1", "inline"), RecordingTelemetry(), sender="me")
    assert "hunter2" not in str(error.value)


def test_the_configuration_says_whether_there_is_one() -> None:
    """It is there only where shared state is Redis, also when sessions are not."""
    telemetry = RecordingTelemetry()
    assert build_bus(Server(sessions=SESSIONS), telemetry, sender="me") is ALONE
    shared = Server(sessions=SESSIONS, shared_state=SharedStateKind.REDIS)
    assert build_bus(shared, telemetry, sender="me").active
