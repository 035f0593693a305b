"""``router-ext explain`` without a router: what it prints, and its exit codes."""

import io
import json
from pathlib import Path

import pytest

from router_ext.cli.main import main

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:1", type: vllm, model_name: m, cost_input_1m: 9, cost_output_1m: 9}
  - {name: b, url: "http://127.0.0.1:2", type: vllm, model_name: m}
rules:
  - {name: cheap, priority: 1, match: {service: s}, backends: [a, b], max_cost_1m: 1}
server: {kv_pinning: {enabled: true}, sessions: {enabled: true}}
quality_gate: {enabled: true, fallback_backend: b, sample_rate: 0.25}
ab_tests:
  - {name: t, match: {service: q}, variant_a: a, variant_b: b, split_pct: 100}
  - {name: copy, match: {service: x}, variant_a: a, variant_b: b, split_pct: 50, mode: shadow}
"""
BODY = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A body and a configuration."""
    monkeypatch.delenv("ROUTER_API_TOKEN", raising=False)
    body, config = tmp_path / "body.json", tmp_path / "router.yaml"
    body.write_text(BODY)
    config.write_text(CONFIG)
    return str(body), str(config)


def explain(files: tuple[str, str], *more: str) -> int:
    """The exit code for the body."""
    return main(["explain", files[0], "--config", files[1], *more])


def test_it_says_where_a_request_goes_and_why(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """The rule, the pin, the budget, the gate, and each candidate with its filter or its scores."""
    assert explain(files, "--header", "X-Kronaxis-Service: s") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "goes to b"
    assert {"rule cheap", "cluster backend-b", "budget admitted"} <= set(lines)
    assert "pin 0 of 2 bytes of the prompt are cached" in lines
    text = " ".join(lines)
    assert "b healthy, 0 in flight health=0" in text
    assert "a healthy, 0 in flight left out by cost: costs $9 per 1M" in text


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("x-kronaxis-service: q", "A/B test t, variant b, by chance"),
        ("x-kronaxis-service: x", "shadow 50% of such requests are copied to b (copy)"),
        ("x-kronaxis-session-create: true", "session create, 8 tokens"),
        ("x-other: 1", "gate 25% of such answers are checked, with b behind it"),
    ],
    ids=["test", "shadow", "session", "gate"],
)
def test_it_says_what_else_would_happen(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], header: str, line: str
) -> None:
    """A/B test, shadow, session and quality gate, each where it would take part."""
    assert explain(files, "--header", header) == 0
    assert line in [" ".join(text.split()) for text in capsys.readouterr().out.splitlines()]


def test_a_refusal_is_an_answer(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body comes from standard input here; a session that nobody knows is refused, too."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    assert explain(("-", files[1])) == 0
    assert capsys.readouterr().out.startswith("refused: 400 invalid_json: ")
    session = "x-kronaxis-session-id: sess_00000000-0000-4000-8000-000000000000"
    assert explain(files, "--header", session) == 0
    assert capsys.readouterr().out.startswith("refused: 404 session_not_found: ")


def test_as_json_it_is_the_answer_of_the_service(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """One object."""
    assert explain(files, "--json", "--path", "/v1/completions") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["cluster"], answer["decision"]["request"]["path"]) == ("backend-a", "/v1/completions")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--header", "no colon"),
        ("--header", "a: 1", "--header", "A: 2"),
        ("--header", "a b: 1"),
        ("--path", "relative"),
        ("--config", "missing.yaml"),
    ],
    ids=["colon", "twice", "name", "path", "config"],
)
def test_a_wrong_call_is_exit_code_2(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """With a line that says what is wrong."""
    assert explain(files, *arguments) == 2
    assert capsys.readouterr().err


def test_a_body_that_cannot_be_read_is_exit_code_2(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """There is no such file."""
    assert explain(("missing.json", files[1])) == 2
    assert "missing.json" in capsys.readouterr().err
