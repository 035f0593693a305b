"""No command ends with a traceback because of who reads its output, or of Ctrl-C."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.processes import DEADLINE_S, ROUTER_EXT, in_bash, start
from tests.fakes.admin_api import FakeAdminApi


@pytest.mark.parametrize(
    "command",
    ["--help", "completion bash", "check-config none.yaml 2>&1", "dpo convert pairs.jsonl --to trl"],
)
def test_a_closed_pipe_ends_a_command_without_a_word(command: str, tmp_path: Path) -> None:
    """As ``head`` closes it, here before anything is printed."""
    (tmp_path / "pairs.jsonl").write_text("")
    ended = in_bash(f"router-ext {command} | exec true; exit 0", tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_reader_that_leaves_early_is_told_in_the_exit_code(tmp_path: Path) -> None:
    """141, as of programs that the system ends for it; the reader has its line."""
    script = "set -o pipefail; router-ext completion bash | head -n 1"
    ended = in_bash(script + "; code=$?; [ $code = 0 ] || [ $code = 141 ] || exit $code", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("#")
    gone = in_bash('router-ext completion bash > >(exec true); exit "$?"', tmp_path)
    assert (gone.code in (0, 141), gone.err) == (True, "")


@pytest.mark.parametrize("command", ["explain", "replay", "doctor", "check-config"])
def test_output_that_nobody_reads_ends_every_command_alike(command: str, tmp_path: Path) -> None:
    """With 141 and without a word: the reader has gone before the first line."""
    config, body, record = (tmp_path / name for name in ("router.yaml", "body.json", "record.json"))
    config.write_text("backends:\n  - {name: a, url: 'http://h:1', type: vllm, model_name: m}\n")
    body.write_text('{"model":"m","messages":[]}')
    record.write_text('{"decisions": []}')
    arguments = {
        "explain": [str(body), "--config", str(config)],
        "replay": [str(record), "--config", str(config)],
        "doctor": [str(config), "--watch", "0", "--envoy", "http://127.0.0.1:1", "--admin", "http://127.0.0.1:1"],
        "check-config": [str(config)],
    }
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        argv = [*ROUTER_EXT, command, *arguments[command]]
        ended = subprocess.run(argv, stdout=theirs, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    finally:
        os.close(theirs)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("command", ["explain - --config router.yaml", "mcp"])
def test_a_closed_standard_input_is_an_empty_one(command: str, tmp_path: Path) -> None:
    """No traceback, and no descriptor that something else gets."""
    (tmp_path / "router.yaml").write_text("backends:\n  - {name: a, url: 'http://h:1', type: vllm, model_name: m}\n")
    ended = in_bash(f"router-ext {command} <&-", tmp_path)
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert "descriptor" not in ended.err


def test_frames_stop_when_nobody_reads_them() -> None:
    """``top`` goes on for ever otherwise."""

    async def ended() -> tuple[int, bytes]:
        async with FakeAdminApi() as api:
            process = await start("top", "--admin", api.url, "--interval", "100ms")
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.wait_for(process.stdout.readline(), 25)
            process.stdout._transport.close()  # type: ignore[attr-defined]
            err = await asyncio.wait_for(process.stderr.read(), 25)
            return await process.wait(), err

    assert asyncio.run(ended()) == (141, b"")


def test_ctrl_c_ends_a_command_that_waits(tmp_path: Path) -> None:
    """With 130 and without a word: here ``init``, at a place where nothing answers."""

    async def ended() -> tuple[int, bytes, bytes]:
        called = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            called.set()
            await reader.read()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            process = await start("init", "--out", str(tmp_path / "r.yaml"), "--scan", f"127.0.0.1:{port}")
            await asyncio.wait_for(called.wait(), 25)
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.wait_for(process.communicate(), 25)
            return process.returncode or 0, out, err

    assert asyncio.run(ended()) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_output_is_no_traceback(tmp_path: Path) -> None:
    """As some supervisors start programs."""
    (tmp_path / "router.yaml").write_text("backends:\n  - {name: a, url: 'http://h:1', type: vllm, model_name: m}\n")
    ended = in_bash("router-ext check-config router.yaml >&-", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert in_bash("router-ext check-config none.yaml >&- 2>&-", tmp_path).code == 2


def test_an_output_that_is_full_is_one_line(tmp_path: Path) -> None:
    """Exit code 1: what should be there is not."""
    ended = in_bash("router-ext completion bash > /dev/full", tmp_path)
    assert (ended.code, ended.err) == (1, "router-ext: [Errno 28] No space left on device\n")


def test_a_name_of_any_bytes_is_no_traceback(tmp_path: Path) -> None:
    """File names need not be text, and a terminal need not know every character."""
    (tmp_path / "router.yaml").write_text("backends:\n  - {name: a, url: 'http://h:1', type: vllm, model_name: m}\n")
    script = "mv router.yaml $'\\xff\\u00e4.yaml'; router-ext check-config $'\\xff\\u00e4.yaml'"
    for option in ("", " --json"):
        ended = in_bash(script.replace("mv", "mv -n") + option, tmp_path, {"PYTHONIOENCODING": "ascii"})
        assert ended.code == 0
        assert "valid" in ended.out


def test_completion_is_accepted_by_bash_and_completes(tmp_path: Path) -> None:
    """Subcommands, and the options of one."""
    script = """
        source <(router-ext completion bash)
        complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            COMPREPLY=(); $(complete -p router-ext | sed 's/.*-F \\([^ ]*\\).*/\\1/') router-ext "${@: -1}"
            echo "${COMPREPLY[@]}"; }
        complete_words router-ext che
        complete_words router-ext check-config --js
        complete_words router-ext completion z
    """
    ended = in_bash(script, tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert [line.split() for line in ended.out.splitlines()] == [["check-config"], ["--json"], ["zsh"]]


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_completion_is_printed_for_other_shells(shell: str, tmp_path: Path) -> None:
    """Checked by the shell itself where it is installed."""
    ended = in_bash(f"router-ext completion {shell} > script", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    text = (tmp_path / "script").read_text()
    assert "check-config" in text
    if subprocess.run(["which", shell], capture_output=True, check=False).returncode == 0:
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], check=False).returncode == 0
