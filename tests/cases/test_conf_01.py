"""CONF-01: a bad version of the file must be refused as a whole, so that the running one stays."""

from collections.abc import Callable
from pathlib import Path

import pytest

from router_ext.config.loader import ConfigError, load
from tests.unit.test_control import B, Place

GOOD = "backends:\n- {name: a, url: 'http://a', type: vllm, model_name: m}\nrules:\n- {name: r, backends: [a]}\n"


def _half_written(file: Path) -> None:
    file.write_text(GOOD[: GOOD.index("type:") + 4])


def _unreadable(file: Path) -> None:
    # A folder in its place cannot be read even by root, whom file modes do not stop.
    file.unlink()
    file.mkdir()


BAD: dict[str, Callable[[Path], object]] = {
    "broken YAML": lambda file: file.write_text("backends: [\n"),
    "empty": lambda file: file.write_text(""),
    "wrong shape": lambda file: file.write_text("- backends\n"),
    "unknown backend": lambda file: file.write_text(GOOD.replace("[a]", "[b]")),
    "removed": lambda file: file.unlink(),
    "half-written": _half_written,
    "unreadable": _unreadable,
}


@pytest.mark.parametrize("name", BAD)
def test_each_bad_version_is_refused_as_a_whole(tmp_path: Path, name: str) -> None:
    """Loading gives a whole configuration or an error, and leaves the last good reading as it is."""
    file = tmp_path / "router.yaml"
    file.write_text(GOOD)
    running = load(file, {})
    BAD[name](file)
    with pytest.raises(ConfigError) as error:
        load(file, {})
    assert error.value.problems
    assert running.config.rules[0].backends == ("a",)


def test_a_good_version_after_bad_ones_is_read(tmp_path: Path) -> None:
    """Nothing of a refused version is remembered."""
    file = tmp_path / "router.yaml"
    file.write_text("backends: [\n")
    with pytest.raises(ConfigError):
        load(file, {})
    file.write_text(GOOD)
    assert load(file, {}).config.backends[0].name == "a"


async def test_no_bad_version_stops_what_runs_with_its_changes(tmp_path: Path) -> None:
    """Each is refused as a whole; what the admin API changed runs on, and a good file is taken over with it."""
    place = Place(tmp_path, GOOD)
    control = place.start()
    await control.change(lambda changes: changes.with_backend("x", {**B, "name": "x"}).with_drained("a"))
    running = control.running
    for name, spoil in BAD.items():
        place.file.write_text(GOOD)
        spoil(place.file)
        with pytest.raises(ConfigError):
            await control.reload()
        assert control.running.loaded is running.loaded, name
        if place.file.is_dir():
            place.file.rmdir()
    place.file.write_text(GOOD.replace("name: r,", "name: new,"))
    config = (await control.reload()).after.loaded.config
    assert [backend.name for backend in config.backends] == ["a", "x"]
    assert [rule.name for rule in config.rules] == ["new"]
    assert config.drained == {"a"}
