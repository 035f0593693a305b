"""BRK-05: when every backend asked for a pause, the refusal knows when the first of them comes back."""

from router_ext.model.decision import NoChoice
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from tests.fakes.domain import backend, request, snapshot

NOW = 1000.0


def test_the_refusal_has_the_end_of_the_shorter_pause() -> None:
    """Two pauses, of 50 s and of 30 s: a client that waits 30 s is served."""
    long = BackendState(backend("a"), Health.HEALTHY, paused_until=NOW + 50)
    short = BackendState(backend("b"), Health.HEALTHY, paused_until=NOW + 30)
    pipeline = Pipeline([], ["a", "b"])
    refused = pipeline.route(Asked(request(), snapshot(long, short), now=NOW))
    assert isinstance(refused, NoChoice)
    assert refused.paused_until == NOW + 30
    assert not isinstance(pipeline.route(Asked(request(), snapshot(long, short), now=NOW + 30)), NoChoice)
