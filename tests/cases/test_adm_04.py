"""ADM-04: after a refused reload an operator must be shown what runs, not what the file says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from router_ext.config.loader import ConfigError
from router_ext.config.masked import masked
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process
from tests.envoy.rig import wait_until
from tests.unit.test_control import ONE, Place

KEYED = ONE.replace("model_name: m", "model_name: m, api_key: sk-inline-1")


async def test_what_runs_is_told_with_its_time_and_the_refusal(tmp_path: Path) -> None:
    """The running configuration with its secrets masked, since when it runs, and what was refused when."""
    place = Place(tmp_path, KEYED)
    control = place.start()
    loaded_at = control.running.loaded_at
    place.file.write_text(KEYED.replace("name: a", "name: other").replace("type: vllm", "type: none"))
    place.clock.advance(60)
    with pytest.raises(ConfigError):
        await control.reload()
    running = control.running
    shown = masked(running.loaded.config)
    assert [(item["name"], item["api_key"]) for item in shown["backends"]] == [("a", "***")]
    assert running.loaded_at == loaded_at
    assert running.refused is not None
    assert running.refused.at == loaded_at + 60
    assert "backends[0].type" in running.refused.message
    assert "sk-inline-1" not in running.refused.message
    assert place.telemetry.reload_problems == [running.refused.message]


@pytest.fixture
def process() -> Iterator[AdminProcess]:
    """A router with a good file."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


def test_after_a_refused_reload_the_api_shows_what_runs(process: AdminProcess) -> None:
    """With the time it was loaded at, and why the file is not in force since when; a good file ends that."""
    status, good = process.ask("/api/config")
    assert (status, good["last_error"]) == (200, None)
    text = process.config.read_text()
    process.config.write_text(text.replace("fallback_chain: [a]", "fallback_chain: [nowhere]"))
    wait_until(lambda: process.ask("/api/config")[1]["last_error"] is not None, "the refusal")
    refused = process.ask("/api/config")[1]
    assert {**refused, "last_error": None} == good
    assert refused["config"]["defaults"]["fallback_chain"] == ["a"]
    assert "unknown backend 'nowhere'" in refused["last_error"]["message"]
    assert refused["last_error"]["at"] >= good["loaded_at"]
    assert refused["config"]["backends"][1]["api_key"] == "***"
    process.config.write_text(text + "rate_limits: {shop: {requests_per_second: 1, burst_size: 1}}\n")
    wait_until(lambda: process.ask("/api/config")[1]["last_error"] is None, "the good file")
    after = process.ask("/api/config")[1]
    assert after["digest"] != good["digest"]
    assert after["loaded_at"] > good["loaded_at"]


def test_a_reload_that_is_asked_for_answers_with_every_problem(process: AdminProcess) -> None:
    """And changes nothing; ``dry_run`` does not even tell of an error afterwards."""
    text = process.config.read_text()
    process.config.write_text(
        text.replace("[a]}\nbudgets", "[nowhere]}\nbudgets").replace("daily_limit_usd: 5", "x: 5")
    )
    status, body = process.ask("/api/config/reload?dry_run=true", "POST")
    assert (status, body["error"]["code"]) == (422, "invalid_config")
    assert {problem["path"] for problem in body["error"]["problems"]} >= {
        "budgets.shop.x",
        "defaults.fallback_chain[0]",
    }
    assert process.ask("/api/config/reload", "POST")[0] == 422
    assert process.ask("/api/config")[1]["last_error"] is not None
    process.config.write_text(text)
    status, body = process.ask("/api/config/reload", "POST")
    assert (status, body["changed"], body["before"]) == (
        200,
        False,
        body["after"] | {"loaded_at": body["before"]["loaded_at"]},
    )
    assert process.ask("/api/config")[1]["last_error"] is None
