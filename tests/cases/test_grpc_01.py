"""GRPC-01: a body over gRPC's default limit must pass, and one over ours must be told so and counted."""

import orjson
import pytest
from prometheus_client import CollectorRegistry

from router_ext.engine.engine import Engine
from router_ext.telemetry.log import get_logger
from router_ext.telemetry.metrics import Metrics
from router_ext.telemetry.recorder import Recorder
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.wire_http import Outcome, Request
from tests.fakes.wire_messages import ProtocolViolation
from tests.fakes.wire_stand import healthy_engine, served

LIMIT = 33_554_432
MIB = 1 << 20


def chat(size: int) -> Request:
    """A buffered chat request of some size."""
    return Request((b'{"model":"served-model","prompt":"'.ljust(size - 2, b"x") + b'"}',))


async def outcomes(registry: CollectorRegistry, *sizes: int) -> list[Outcome]:
    """Requests of these sizes, one after the other, on a server whose telemetry counts in the registry."""
    clock = FakeClock()
    recorder = Recorder(Metrics(registry), get_logger(), clock.wall, frozenset())
    async with served(healthy_engine(Engine, recorder, clock, CannedDispatcher()), recorder) as (_, channel):
        return [await FakeEnvoy(channel).exchange(chat(size)) for size in sizes]


async def test_a_body_over_the_default_of_the_library_passes() -> None:
    """The library refuses messages over 4 MiB by itself, without a word in any log; 5 MiB must be routed."""
    (outcome,) = await outcomes(CollectorRegistry(), 5 * MIB)
    assert outcome.upstream is not None
    assert (outcome.upstream.cluster, len(outcome.upstream.body)) == ("backend-alpha", 5 * MIB)


async def test_a_body_over_the_limit_is_a_413_and_counted() -> None:
    """One byte too many: an error that names the limit, and a counter by reason; the next request is served."""
    registry = CollectorRegistry()
    refused, passed = await outcomes(registry, LIMIT + 1, 100)
    assert refused.client is not None
    assert refused.client.status == 413
    assert orjson.loads(refused.client.body)["error"]["code"] == "body_too_large"
    labels = {"service": "other", "backend": "", "reason": "body_too_large"}
    assert registry.get_sample_value("kronaxis_router_errors_total", labels) == 1.0
    assert passed.upstream is not None


async def test_a_message_that_envoy_cannot_send_hurts_nobody_else() -> None:
    """Envoy itself answers 413 above the limit; were a message to come all the same, only its own stream would end."""
    clock = FakeClock()
    recorder = Recorder(Metrics(CollectorRegistry()), get_logger(), clock.wall, frozenset())
    async with served(healthy_engine(Engine, recorder, clock, CannedDispatcher()), recorder) as (_, channel):
        with pytest.raises(ProtocolViolation, match="RESOURCE_EXHAUSTED"):
            await FakeEnvoy(channel).exchange(chat(LIMIT + 2 * MIB))
        outcome = await FakeEnvoy(channel).exchange(chat(100))
    assert outcome.upstream is not None
