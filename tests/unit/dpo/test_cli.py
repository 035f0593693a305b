"""``router-ext dpo``: what it prints, writes and returns."""

import json
import stat
from pathlib import Path

import pytest

from router_ext.cli.main import main
from router_ext.dpo.pair import Message, line_of
from tests.fakes.lines import PAIR, pair

CALLS = '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}]'
TOOL_PROMPT: tuple[Message, ...] = (
    {"role": "user", "content": "Ask f."},
    {"role": "assistant", "content": "", "tool_calls": CALLS},
    {"role": "tool", "content": "2", "tool_call_id": "c1"},
)


def _file(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Two pairs of one rule and one of another."""
    others = (pair(rule="code"), pair(reason="min_length"))
    return _file(tmp_path / "good.jsonl", line_of(PAIR), *(line_of(other) for other in others))


def test_check_counts_pairs_by_reason_and_rule(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The most frequent first, and 0 when every line is good."""
    assert main(["dpo", "check", str(good)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{good}: 3 pairs, 0 wrong lines",
        "reason schema: 2",
        "reason min_length: 1",
        "rule chat: 2",
        "rule code: 1",
    ]


def test_check_tells_the_lines_that_are_wrong(tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With file and number on standard error, and exit code 1; the other lines still count."""
    bad = _file(tmp_path / "bad.jsonl", line_of(PAIR), b"{", line_of(PAIR), b"[]")
    assert main(["dpo", "check", str(good), str(bad)]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"{bad}:2: not valid JSON in UTF-8", f"{bad}:4: not a JSON object"]
    assert f"{bad}: 2 pairs, 2 wrong lines" in printed.out.splitlines()
    assert "reason schema: 4" in printed.out.splitlines()


def test_check_shows_the_first_twenty_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of something else has too many to read."""
    bad = _file(tmp_path / "bad.jsonl", *[b"{}"] * 22)
    assert main(["dpo", "check", str(bad)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[-2:] == [f"{bad}:20: the key 'prompt' is missing", f"{bad}: 2 more"]


def test_check_prints_one_json_object(tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For programs: totals, and each file with its problems."""
    bad = _file(tmp_path / "bad.jsonl", b"{}")
    assert main(["dpo", "check", "--json", str(good), str(bad)]) == 1
    problem = {"line": 1, "problem": "the key 'prompt' is missing"}
    assert json.loads(capsys.readouterr().out) == {
        "pairs": 3,
        "wrong": 1,
        "by_reason": {"schema": 2, "min_length": 1},
        "by_rule": {"chat": 2, "code": 1},
        "files": [
            {"file": str(good), "pairs": 3, "wrong": 0, "problems": []},
            {"file": str(bad), "pairs": 0, "wrong": 1, "problems": [problem]},
        ],
    }


def test_an_empty_file_is_a_good_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a router leaves it that had nothing to export."""
    assert main(["dpo", "check", str(_file(tmp_path / "empty.jsonl"))]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'empty.jsonl'}: 0 pairs, 0 wrong lines\n"


@pytest.mark.parametrize("arguments", [["check"], ["convert", "--to", "trl"]])
def test_a_file_that_cannot_be_read_is_a_wrong_call(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and one line."""
    assert main(["dpo", *arguments, str(tmp_path / "none.jsonl")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_convert_prints_trls_format(good: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Conversational, with an explicit prompt: completions only in chosen and rejected."""
    assert main(["dpo", "convert", str(good), "--to", "trl"]) == 0
    assert capsysbinary.readouterr().out.splitlines() == [
        b'{"prompt":[{"role":"user","content":"Name a prime."}],'
        b'"chosen":[{"role":"assistant","content":"7"}],"rejected":[{"role":"assistant","content":"9"}]}'
    ] * 3  # fmt: skip


def test_convert_gives_all_messages_the_same_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that some message has, null in the others; calls are a list. The line that has them comes first."""
    named = pair({"role": "user", "content": "Hi", "name": "jo"})
    file = _file(tmp_path / "p.jsonl", line_of(PAIR), line_of(pair(*TOOL_PROMPT)), line_of(PAIR), line_of(named))
    assert main(["dpo", "convert", str(file), "--to", "trl"]) == 0
    prompts = [json.loads(line)["prompt"] for line in capsys.readouterr().out.splitlines()]
    nothing = {"name": None, "tool_calls": None, "tool_call_id": None}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    prime = [{"role": "user", "content": "Name a prime."} | nothing]
    assert prompts == [
        [
            {"role": "user", "content": "Ask f."} | nothing,
            {"role": "assistant", "content": ""} | nothing | {"tool_calls": [call]},
            {"role": "tool", "content": "2"} | nothing | {"tool_call_id": "c1"},
        ],
        [{"role": "user", "content": "Hi"} | nothing | {"name": "jo"}],
        prime,
        prime,
    ]


def test_convert_brings_calls_into_one_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Custom tools, arguments that are an object, and missing fields: all of it is text."""
    calls = [{"type": "custom", "custom": {"name": "f", "input": "x"}}, {"function": {"arguments": {"a": 1}}}, {}]
    made = pair({"role": "user", "content": "", "tool_calls": json.dumps(calls)})
    assert main(["dpo", "convert", str(_file(tmp_path / "p.jsonl", line_of(made))), "--to", "trl"]) == 0
    converted = json.loads(capsys.readouterr().out)["prompt"][0]["tool_calls"]
    assert [(call["id"], call["type"], *call["function"].values()) for call in converted] == [
        ("", "function", "f", "x"),
        ("", "function", "", '{"a":1}'),
        ("", "function", "", ""),
    ]


def test_convert_writes_a_file_at_once(tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For its owner only, in place of what was there, and nothing is left beside it."""
    target = tmp_path / "out" / "trl.jsonl"
    target.parent.mkdir()
    target.write_text("old")
    assert main(["dpo", "convert", str(good), "--to", "trl", "--out", str(target)]) == 0
    assert len(target.read_bytes().splitlines()) == 3
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(target.parent.iterdir()) == [target]
    assert capsys.readouterr().out == ""


def test_convert_writes_nothing_of_a_file_with_a_wrong_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which line, and the old output stays."""
    bad = _file(tmp_path / "bad.jsonl", line_of(PAIR), b"{}")
    target = tmp_path / "trl.jsonl"
    target.write_text("old")
    assert main(["dpo", "convert", str(bad), "--to", "trl", "--out", str(target)]) == 1
    assert capsys.readouterr().err == f"{bad}:2: the key 'prompt' is missing\n"
    assert target.read_text() == "old"


@pytest.mark.parametrize("arguments", [[], ["check"], ["convert", "x"], ["convert", "x", "--to", "axolotl"]])
def test_a_call_without_what_it_needs_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Usage and exit code 2."""
    with pytest.raises(SystemExit) as exit_info:
        main(["dpo", *arguments])
    assert exit_info.value.code == 2
    assert "usage: router-ext dpo" in capsys.readouterr().err
