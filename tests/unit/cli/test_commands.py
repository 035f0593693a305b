"""What all commands have in common: options, help, exit codes, and errors for programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from router_ext.cli import explain, reference
from router_ext.cli.catalogue import COMMANDS
from router_ext.cli.exit_codes import OF_COMMAND
from router_ext.cli.main import main
from router_ext.cli.parser import arguments, build_parser, leaves

LEAVES = dict(leaves(build_parser(COMMANDS)))
NO_RESULT = {"serve", "worker", "sim-backend", "mcp", "completion"}
DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", [name for name in LEAVES if name not in NO_RESULT])
def test_a_command_can_answer_in_json(name: str) -> None:
    """All but those that log JSON or speak it anyway, and the one that prints a script."""
    options = {option for action in arguments(LEAVES[name]) for option in action.option_strings}
    assert "--json" in options


@pytest.mark.parametrize("name", list(LEAVES))
def test_help_tells_the_exit_codes(name: str) -> None:
    """Below the options."""
    assert "exit codes: 0 " in " ".join(LEAVES[name].format_help().lower().split())


@pytest.mark.parametrize("name", list(LEAVES))
def test_every_argument_is_explained(name: str) -> None:
    """No option without a line about it, and no command without a sentence."""
    parser = LEAVES[name]
    assert parser.description
    assert [action.dest for action in arguments(parser) if not action.help] == []


def test_exit_codes_are_of_commands_that_there_are() -> None:
    """A command that is renamed takes its codes along."""
    assert set(OF_COMMAND) <= set(LEAVES)


def test_the_page_in_the_repository_is_the_generated_one() -> None:
    """A changed parser needs its page: run ``python -m router_ext.cli.reference docs/``."""
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == reference.page()


def test_the_page_is_the_same_in_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that change a default are named, and their values do not get into the page."""
    before = reference.page()
    monkeypatch.setenv("CONFIG_PATH", "elsewhere.yaml")
    monkeypatch.setenv("LOG_LEVEL", "debug")
    monkeypatch.setenv("COLUMNS", "40")
    assert reference.page() == before


def test_the_page_is_written_into_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which must be named."""
    assert reference.main([str(tmp_path)]) == 0
    assert (tmp_path / "cli.md").read_text(encoding="utf-8") == reference.page()
    assert reference.main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_what_a_command_says_itself_stands_above_its_exit_codes() -> None:
    """One text may hold all that does not fit an option."""
    said = LEAVES["explain"].epilog
    assert said is not None
    assert said.startswith(f"{explain.EPILOG}\n\nexit codes:\n  0 ")


def test_help_imports_no_command() -> None:
    """Only the command that is asked for is imported, so that none waits for the others."""
    code = "import sys\nfrom router_ext.cli.main import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules)"
    heavy = {"grpc", "aiohttp", "pydantic", "prometheus_client", "rich"}
    for argv, needed in (([], set()), (["top"], {"aiohttp", "pydantic", "rich"})):
        ran = subprocess.run((sys.executable, "-c", code, *argv, "--help"), capture_output=True, text=True, check=True)
        imported = set(ran.stdout.splitlines()[-1].split())
        assert heavy & imported == needed, argv


@pytest.mark.parametrize("argv", [[], ["no-such"], ["check-config", "--no-such"], ["dpo", "check"]])
def test_a_bad_call_gets_usage_and_exit_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("usage: router-ext")
    assert "error: " in printed.err


@pytest.mark.parametrize("argv", [["--json"], ["check-config", "--json", "--no-such"], ["dpo", "check", "--json"]])
def test_a_bad_call_of_a_program_gets_an_object(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The only thing on standard error, and nothing on standard output."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    printed = capsys.readouterr()
    error = json.loads(printed.err)["error"]
    assert (ended.value.code, printed.out) == (2, "")
    assert error["code"] == "bad_call"
    assert error["message"]


def test_a_configuration_that_cannot_be_used_is_an_object_with_its_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with path, line and message."""
    file = tmp_path / "router.yaml"
    file.write_text("server: {port: 0}\nbackends: []\n")
    assert main(["envoy-config", "--json", str(file)]) == 2
    printed = capsys.readouterr()
    error = json.loads(printed.err)["error"]
    assert printed.out == ""
    assert error["code"] == "bad_configuration"
    assert [(problem["path"], problem["line"]) for problem in error["problems"]] == [
        ("server.port", 1),
        ("backends", 2),
    ]


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, no traceback; for programs an object."""
    config = tmp_path / "router.yaml"
    config.write_text("backends:\n  - {name: a, url: 'http://h:1', type: vllm, model_name: m}\n")
    (tmp_path / "file").write_text("")
    argv = ["envoy-config", str(config), "--out", str(tmp_path / "file" / "below")]
    assert main(argv) == 1
    assert capsys.readouterr().err.startswith("router-ext: ")
    assert main([*argv, "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "failed"
