"""Requests a second by service."""

from dataclasses import replace

import pytest

from router_ext.config.sections import RateLimit, Server
from router_ext.engine.rate_limits import MAX_BUCKETS, RateLimits
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Caller
from router_ext.stream.effects import Answer
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig
from tests.fakes.telemetry import RecordingTelemetry


class Limited:
    """Limits with a clock of their own."""

    def __init__(self, *limits: RateLimit, workers: int = 1) -> None:
        self.clock, self.telemetry = FakeClock(), RecordingTelemetry()
        self.limits = RateLimits(self.telemetry, self.clock)
        self.limits.configure(limits, workers)

    def after_s(self, service: str = "shop") -> int | None:
        """What one more request is told: None when it may pass."""
        rejection = self.limits.take(Caller(service))
        return None if rejection is None else rejection.retry_after_s

    def passing(self, number: int, service: str = "shop") -> int:
        """How many of ``number`` requests at once may pass."""
        return [self.after_s(service) for _ in range(number)].count(None)


def test_a_burst_passes_and_the_next_request_does_not() -> None:
    """With nothing before it."""
    limited = Limited(RateLimit("shop", 1.0, 3))
    assert [limited.after_s() for _ in range(4)] == [None, None, None, 1]
    assert limited.telemetry.rate_limits == ["shop"]


def test_a_refusal_says_why_and_is_429() -> None:
    """The code is ``rate_limited``."""
    limited = Limited(RateLimit("shop", 1.0, 1))
    limited.after_s()
    rejection = limited.limits.take(Caller("shop"))
    assert rejection == Rejection(Reason.RATE_LIMITED, "This service sends too many requests.", None, 1)
    assert rejection.status == 429


def test_the_bucket_fills_at_the_rate_and_no_higher_than_the_burst() -> None:
    """Two a second: one is there after half a second and not just before; after an hour there are three."""
    limited = Limited(RateLimit("shop", 2.0, 3))
    assert limited.passing(4) == 3
    limited.clock.advance(0.49)
    assert limited.after_s() == 1
    limited.clock.advance(0.01)
    assert [limited.after_s(), limited.after_s()] == [None, 1]
    limited.clock.advance(3600)
    assert limited.passing(4) == 3


@pytest.mark.parametrize(
    ("rate", "waited_s", "after_s"),
    [(100.0, 0, 1), (1.0, 0, 1), (0.5, 0, 2), (0.5, 0.5, 2), (0.5, 1, 1), (0.001, 0, 1000)],
)
def test_retry_after_is_the_whole_seconds_until_a_request_would_pass(
    rate: float, waited_s: float, after_s: int
) -> None:
    """Rounded up, at least 1; by then it does pass."""
    limited = Limited(RateLimit("shop", rate, 1))
    limited.after_s()
    limited.clock.advance(waited_s)
    assert limited.after_s() == after_s
    limited.clock.advance(after_s)
    assert limited.after_s() is None


def test_a_refused_request_takes_nothing() -> None:
    """A client that does not wait is served at the rate, too."""
    limited = Limited(RateLimit("shop", 1.0, 1))
    passed = 0
    for _ in range(40):
        passed += limited.passing(1)
        limited.clock.advance(0.25)
    assert passed == 10


def test_services_do_not_share_a_bucket() -> None:
    """Each that is not named has its own, by the rate of ``default``; so have requests without a service."""
    limited = Limited(RateLimit("shop", 1.0, 2), RateLimit("default", 1.0, 1))
    assert [limited.passing(5, service) for service in ("shop", "cart", "news", "")] == [2, 1, 1, 1]


def test_without_default_who_is_not_named_is_not_limited() -> None:
    """Nor is anybody without any limit."""
    assert Limited(RateLimit("shop", 1.0, 1)).passing(1000, "cart") == 1000
    assert Limited().passing(1000) == 1000


def test_buckets_are_bounded_and_the_least_recently_used_goes() -> None:
    """It begins anew, full; whoever was seen since is still empty."""
    limited = Limited(RateLimit("default", 0.001, 1))
    for service in ("first", "second"):
        limited.passing(1, service)
    for number in range(MAX_BUCKETS - 2):
        limited.passing(1, f"made-up-{number}")
    assert limited.passing(1, "first") == 0
    limited.passing(1, "one more")
    assert limited.passing(1, "first") == 0
    assert limited.passing(1, "second") == 1


def test_each_worker_has_its_share() -> None:
    """Of four: a quarter of the rate and of the burst, of which at least one request is left."""
    limited = Limited(RateLimit("shop", 4.0, 8), RateLimit("cart", 4.0, 3), workers=4)
    assert [limited.passing(9, "shop"), limited.passing(9, "cart")] == [2, 1]
    limited.clock.advance(1)
    assert limited.passing(9, "shop") == 1


def test_a_new_configuration_counts_at_once_for_what_is_in_the_buckets() -> None:
    """What was taken stays taken, and no more than the new burst is left."""
    limited = Limited(RateLimit("shop", 1.0, 10))
    limited.passing(3)
    limited.limits.configure((RateLimit("shop", 1.0, 5),), 1)
    assert limited.passing(10) == 5
    limited.limits.configure((RateLimit("shop", 1.0, 20),), 1)
    assert limited.passing(10) == 0
    limited.limits.configure((), 1)
    assert limited.passing(10) == 10


# In the engine


def _engine(*limits: RateLimit, workers: int = 1) -> EngineRig:
    return EngineRig(replace(router(backend()), rate_limits=limits, server=Server(workers=workers)))


def test_a_request_too_many_is_refused_before_its_body_is_looked_at() -> None:
    """429 with ``Retry-After``; nothing is in flight for it. Its caller is counted."""
    rig, mine = _engine(RateLimit("shop", 0.25, 1)), head(x_kronaxis_service="shop")
    rig.forward(head_=mine)
    plan = rig.plan(b"no JSON", mine)
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (429, "4")
    assert rig.in_flight() == {"a": 1}
    assert [(caller.service, rejection.reason.value) for caller, rejection in rig.telemetry.refusals] == [
        ("shop", "rate_limited")
    ]
    rig.forward(head_=head(x_kronaxis_service="cart"))


def test_only_the_inference_paths_are_limited() -> None:
    """The model list and other paths are not."""
    rig = _engine(RateLimit("default", 0.25, 1))
    for _ in range(3):
        rig.forward(None, head("/v1/files", "GET"))
        plan = rig.plan(None, head("/v1/models", "GET"))
        assert isinstance(plan, Answer)
        assert plan.status == 200
    rig.forward()
    assert rig.refuse()[0] == 429


def test_a_new_limit_is_in_force_without_a_restart_but_another_number_of_workers_is_not() -> None:
    """As many processes share it as were started."""
    rig = _engine(RateLimit("default", 1.0, 1))
    rig.forward()
    rig.engine.configure(replace(rig.config, rate_limits=(RateLimit("default", 1.0, 4),), server=Server(workers=2)))
    rig.clock.advance(3)
    for _ in range(3):
        rig.forward()
    assert rig.refuse()[0] == 429
