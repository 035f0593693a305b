"""MET-02: paths of scanners must not become labels."""

import asyncio

from router_ext.engine.engine import Engine
from router_ext.model.snapshot import Health
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.domain import backend, head, record, router
from tests.fakes.recorder import RecorderRig
from tests.fakes.session_store import FakeSessionStore

PATHS = ["/wp-login.php", "/.git/config", *(f"/cgi-bin/z{number}" for number in range(1000))]


def test_unknown_paths_share_one_series() -> None:
    """They count under the rule ``other``."""
    rig = RecorderRig()
    engine = Engine(router(backend()), rig.recorder, FakeClock(), CannedDispatcher(), FakeSessionStore(), id_prefix="t")
    engine.set_health("a", Health.HEALTHY)

    async def scan() -> None:
        for path in PATHS:
            await engine.plan(head(path, "GET"), b"")
            engine.settle(record(engine.recent[-1].id, 404))

    asyncio.run(scan())
    assert rig.series("requests_total") == {("a", "other", "other"): 1002.0}
    assert rig.series("request_duration_seconds_count") == {("a", "other"): 1002.0}
