"""Which commands look at the changes of the admin API."""

import json
from pathlib import Path

import pytest

from router_ext.cli.main import main

FILE = 'backends: [{name: a, url: "http://127.0.0.1:1", type: vllm, model_name: m}]\n'
B = {"url": "http://127.0.0.1:2", "type": "vllm", "model_name": "m"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid file, above which the API added the backend b."""
    path = tmp_path / "router.yaml"
    path.write_text(FILE)
    keep(path, backends={"b": B})
    return path


def keep(file: Path, **changes: object) -> None:
    """Puts these changes on disk."""
    kept = file.parent / "data" / "changes.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps({"version": 1, **changes}))


def test_check_config_looks_at_the_file_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says whether the file stands by itself, on any machine."""
    keep(file, rules={"r": {"backends": ["gone"]}})
    assert main(["check-config", str(file)]) == 0
    assert "valid (1 backends" in capsys.readouterr().out


def test_envoy_config_knows_backends_of_the_api(file: Path) -> None:
    """So does an Envoy that starts anew."""
    assert main(["envoy-config", str(file)]) == 0
    assert "backend-b" in (file.parent / "envoy" / "clusters.yaml").read_text()


def test_envoy_config_refuses_changes_that_do_not_fit(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the router would; no file is written."""
    keep(file, rules={"r": {"backends": ["gone"]}})
    assert main(["envoy-config", str(file)]) == 2
    assert "admin API rules[r].backends[0]: unknown backend 'gone'" in capsys.readouterr().err
    assert not (file.parent / "envoy").exists()


def test_serve_refuses_changes_that_do_not_fit_and_says_how_to_go_on(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the problem, the file and the option."""
    keep(file, rules={"r": {"backends": ["gone"]}})
    assert main(["serve", str(file)]) == 2
    told = capsys.readouterr().err
    assert "admin API rules[r].backends[0]: unknown backend 'gone'" in told
    assert str(file.parent / "data" / "changes.json") in told
    assert "router-ext serve --discard-changes" in told


def test_serve_sets_changes_aside(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything else is looked at: here the file is wrong as well."""
    file.write_text("backends: []\n")
    assert main(["serve", str(file), "--discard-changes"]) == 2
    assert "changes.json.discarded" in capsys.readouterr().err
    assert not (file.parent / "data" / "changes.json").exists()
