"""``router-ext doctor``: its exit codes and its lines."""

import json
from pathlib import Path

import pytest

from router_ext.cli.main import main
from router_ext.demo.child import free_port
from router_ext.doctor.catalogue import CHECKS

CONFIG = """
server: {{envoy_admin_port: {envoy}, admin_port: {admin}}}
backends:
  - {{name: a, url: "http://127.0.0.1:1", type: vllm, model_name: m}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration on whose ports nobody listens."""
    path = tmp_path / "router.yaml"
    path.write_text(CONFIG.format(envoy=free_port(), admin=free_port()))
    return path


def test_nobody_there_is_exit_code_1_and_says_what_to_do(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a check; under each that reports, what mends it and why it matters."""
    assert main(["doctor", str(config), "--watch", "0"]) == 1
    out = capsys.readouterr().out
    assert "error    envoy-admin          Envoy's admin page at http://127.0.0.1:" in out
    assert "mend: start Envoy, or say where it is: --envoy URL; its port is " in out
    assert "why: Without Envoy no client is served" in out
    assert "\x1b" not in out
    assert out.splitlines()[-1] == f"{len(CHECKS)} checks, 2 errors, 0 warnings"


def test_json_is_one_object(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same for a script."""
    assert main(["doctor", str(config), "--watch", "0", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["errors"], report["warnings"]) == (2, 0)
    assert [check["id"] for check in report["checks"]] == [check.id for check in CHECKS]
    assert {check["status"] for check in report["checks"]} == {"error", "skipped"}
    assert set(report["checks"][0]["findings"][0]) == {"wrong", "mend"}


def test_a_configuration_that_cannot_be_used_is_exit_code_2(tmp_path: Path) -> None:
    """Nothing is asked then."""
    assert main(["doctor", str(tmp_path / "missing.yaml")]) == 2


def test_a_token_that_no_header_can_carry_is_exit_code_2(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it is not shown."""
    monkeypatch.setenv("ROUTER_API_TOKEN", "two words")
    assert main(["doctor", str(config)]) == 2
    assert "two words" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--watch", "-1"],
        ["--watch", "61"],
        ["--watch", "nan"],
        ["--watch", "soon"],
        ["--envoy", "localhost:8053"],
        ["--envoy", "ftp://h"],
        ["--admin", "http://user:secret@h"],
        ["--admin", "http://h?x=1"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_exit_code_2(config: Path, arguments: list[str]) -> None:
    """As for every command."""
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(config), *arguments])
    assert ended.value.code == 2
