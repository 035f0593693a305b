"""ADM-04: after a refused reload an operator must be shown what runs, not what the file says."""

from pathlib import Path

import pytest

from router_ext.config.loader import ConfigError
from router_ext.config.masked import masked
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
