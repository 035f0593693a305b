"""A/B tests on the admin port."""

from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from router_ext.admin.ab_tests import ab_test_routes
from router_ext.config.sections import AbTest
from router_ext.engine.experiments import Experiments
from router_ext.model.rule import Match
from tests.fakes.clock import FakeClock
from tests.fakes.telemetry import RecordingTelemetry


def shown(experiments: Experiments) -> list[dict[str, Any]]:
    """What the port answers with."""

    async def report() -> list[dict[str, Any]]:
        return experiments.report()

    app = FastAPI()
    app.include_router(ab_test_routes(report))
    answer = TestClient(app).get("/api/ab-tests")
    assert answer.status_code == 200
    assert set(answer.json()) == {"ab_tests"}
    tests: list[dict[str, Any]] = answer.json()["ab_tests"]
    return tests


def test_the_port_shows_the_report_as_it_is_now() -> None:
    """Every test, in the file's order; none before there is one."""
    experiments = Experiments(RecordingTelemetry(), FakeClock())
    assert shown(experiments) == []
    experiments.configure([AbTest("one", Match(), "a", "b", 5.0), AbTest("two", Match(), "a", "c", 5.0, mode="shadow")])
    assert shown(experiments) == experiments.report()
    assert [test["name"] for test in shown(experiments)] == ["one", "two"]
