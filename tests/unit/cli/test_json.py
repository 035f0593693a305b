"""``--json`` of the commands that read and write files."""

import json
from pathlib import Path

import pytest

from router_ext.cli.main import main
from router_ext.dpo.pair import line_of
from tests.fakes.lines import PAIR

VALID = """\
backends:
  - {name: a, url: "http://h:8000", type: vllm, model_name: m}
  - {name: b, url: "http://h:8001", type: vllm, model_name: m}
rules:
  - {name: all, backends: [a]}
defaults: {fallback_chain: [a]}
"""


def test_check_config_tells_what_a_valid_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its warnings, which are not printed once more."""
    file = tmp_path / "router.yaml"
    file.write_text(VALID)
    assert main(["check-config", "--json", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out) == {
        "file": str(file),
        "valid": True,
        "problems": [],
        "warnings": [{"path": "backends[1]", "line": 3, "message": "backend 'b' is used nowhere"}],
        "backends": ["a", "b"],
        "rules": ["all"],
    }


def test_check_config_tells_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That is its result: on standard output, with exit code 2."""
    file = tmp_path / "router.yaml"
    file.write_text(VALID.replace("type: vllm", "type: vlm", 1))
    assert main(["check-config", "--json", str(file)]) == 2
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (printed.err, found["valid"], found["warnings"]) == ("", False, [])
    assert [(problem["path"], problem["line"]) for problem in found["problems"]] == [("backends[0].type", 2)]


def test_a_problem_without_a_line_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a file that is not there."""
    assert main(["check-config", "--json", str(tmp_path / "none.yaml")]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["path"], problem["line"]) == ("", None)


def test_envoy_config_names_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With their whole paths, and the configuration's warnings."""
    file = tmp_path / "router.yaml"
    file.write_text(VALID)
    assert main(["envoy-config", "--json", str(file), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    made = json.loads(printed.out)
    assert printed.err == ""
    assert made["files"] == [str(tmp_path / "out" / name) for name in ("bootstrap.yaml", "clusters.yaml")]
    assert all(Path(name).is_file() for name in made["files"])
    assert [warning["path"] for warning in made["warnings"]] == ["backends[1]"]


def test_dpo_convert_keeps_its_summary_from_the_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output holds training data and nothing else."""
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(line_of(PAIR) + b"\n")
    assert main(["dpo", "convert", str(file), "--to", "trl", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.err) == {"file": str(file), "pairs": 1, "wrong": 0, "problems": [], "out": None}
    assert len(printed.out.splitlines()) == 1


def test_dpo_convert_tells_which_lines_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And writes nothing."""
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(b"{\n")
    out = tmp_path / "trl.jsonl"
    assert main(["dpo", "convert", str(file), "--to", "trl", "--json", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.err)
    assert (found["wrong"], found["out"], printed.out) == (1, str(out), "")
    assert not out.exists()


def test_dpo_tells_of_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and an object on standard error."""
    assert main(["dpo", "check", "--json", str(tmp_path / "none.jsonl")]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "unreadable"
