"""``router-ext replay``: files of decisions, and what it says of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from router_ext.cli.main import main
from router_ext.cli.recorded import RecordError, read_decisions
from router_ext.config.sections import AbTest, Budget, RouterConfig
from router_ext.decisions.record import json_of_message, message_of_decision
from router_ext.model.rule import Match
from router_ext.model.snapshot import Health
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig

OLD = router(backend("a"), backend("b"))
NEW = """
backends:
  - {name: a, url: "http://a:8000", type: vllm, model_name: m-a}
  - {name: b, url: "http://b:8000", type: vllm, model_name: m-a}
  - {name: c, url: "http://c:8000", type: vllm, model_name: m-a}
rules:
  - {name: shops, priority: 1, match: {service: shop}, backends: [c]}
"""


def recorded(config: RouterConfig = OLD, *services: str, down: str = "") -> list[dict[str, Any]]:
    """Decisions for one request of each service."""
    rig = EngineRig(config)
    if down:
        rig.engine.set_health(down, Health.DOWN)
    for service in services:
        rig.plan(head_=head(x_kronaxis_service=service))
    return [json_of_message(message_of_decision(decision)) for decision in rig.engine.recent]


def written(folder: Path, text: str) -> Path:
    """A file of recorded decisions."""
    path = folder / "decisions"
    path.write_text(text)
    return path


def replayed(folder: Path, decisions: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command says as JSON."""
    config = folder / "new.yaml"
    config.write_text(NEW)
    path = written(folder, json.dumps({"decisions": decisions}))
    assert main(["replay", str(path), "--config", str(config), "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def test_it_counts_who_would_move_from_where_to_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the rule that decided, with the rule that would."""
    report = replayed(tmp_path, recorded(OLD, "shop", "shop", "bank"), capsys)
    assert (report["replayed"], report["moved"], report["left_out"]) == (3, 2, {})
    assert report["moves"] == [{"rule": "default", "from": "a", "to": "c", "new_rule": "shops", "count": 2}]
    assert report["rules"] == {"default": {"replayed": 3, "moved": 2}}


def test_the_state_of_the_time_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A backend that was down then still is; one that was not there is healthy."""
    report = replayed(tmp_path, recorded(OLD, "bank", down="a"), capsys)
    assert (report["replayed"], report["moved"]) == (1, 0)


def test_a_refused_request_may_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a backend that is new: its place before is null."""
    alone = router(backend("a"))
    report = replayed(tmp_path, recorded(alone, "bank", down="a"), capsys)
    assert report["moves"] == [{"rule": "default", "from": None, "to": "b", "new_rule": "default", "count": 1}]


def test_what_rules_do_not_decide_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason."""
    tested = replace(OLD, ab_tests=(AbTest("t", Match(), "a", "b", 50.0),))
    spent = replace(OLD, budgets=(Budget("shop", 0.0000001),))
    rig = EngineRig(spent)
    rig.engine.spend.add("shop", 9, rig.clock.wall())
    rig.plan(head_=head(x_kronaxis_service="shop"))
    rig.plan(head_=head("/v1/files"))
    decisions = recorded(tested, "q") + [json_of_message(message_of_decision(item)) for item in rig.engine.recent]
    first = recorded(OLD, "q")[0]
    decisions += [{**first, "id": "x", "attempt": 2}, {**first, "id": "y", "rule": ""}]
    decisions += [{name: value for name, value in first.items() if name != "seen"} | {"id": "z"}]
    for number, item in enumerate(decisions):
        item["id"] = str(number)
    report = replayed(tmp_path, decisions, capsys)
    assert report["replayed"] == 0
    assert report["left_out"] == {
        "an A/B test decided": 1,
        "a spent budget decided": 1,
        "no inference": 1,
        "a later attempt": 1,
        "refused before it was decided": 1,
        "no state recorded": 1,
    }


def test_as_text_it_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sum first, then each move, then each rule."""
    config = tmp_path / "new.yaml"
    config.write_text(NEW)
    path = written(tmp_path, json.dumps({"decisions": recorded(OLD, "shop", "bank")}))
    assert main(["replay", str(path), "--config", str(config)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "1 of 2 decisions would move"
    assert "default a c shops 1" in lines
    assert "default: 1 of 2 move" in lines


@pytest.mark.parametrize("form", ["answer", "pretty", "lines", "events", "one"])
def test_every_form_of_a_record_is_read(tmp_path: Path, form: str) -> None:
    """An answer of the API, as it came or indented; decisions or events by line; a decision that comes twice is one."""
    decisions = recorded(OLD, "s") if form == "one" else recorded(OLD, "s", "t")
    text = {
        "answer": json.dumps({"decisions": decisions}),
        "pretty": json.dumps({"decisions": decisions}, indent=2),
        "lines": "\n".join(map(json.dumps, [*decisions, *decisions])) + "\n\n",
        "events": "\n".join(json.dumps({"decision": item, "settlement": {}}) for item in decisions),
        "one": json.dumps({"decision": decisions[0]}),
    }[form]
    found = list(read_decisions(written(tmp_path, text)))
    assert [item.id for item in found] == ["t-1", "t-2"][: len(decisions)]


@pytest.mark.parametrize(
    "text",
    ["", "x", '{"a": 1}', "[]", '{"decisions": [1]}', '{"decision": {"time": 1, "request": {}}}', '{"id": "a"}\n{'],
    ids=["empty", "text", "object", "list", "number", "form", "cut"],
)
def test_a_file_of_anything_else_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """The place is named, and nothing of the file is quoted. An empty file holds no decision, which is no error."""
    config = tmp_path / "new.yaml"
    config.write_text(NEW)
    path = written(tmp_path, text)
    code = main(["replay", str(path), "--config", str(config)])
    assert code == (2 if text else 0)
    assert not text or str(path) in capsys.readouterr().err
    if text:
        with pytest.raises(RecordError):
            list(read_decisions(path))


def test_a_last_line_that_is_cut_off_is_no_part_of_the_record(tmp_path: Path) -> None:
    """As a ``tail`` that was killed leaves it; in the middle it is an error."""
    first, second = (json.dumps({"decision": decision}) for decision in recorded(OLD, "shop", "bank"))
    assert len(list(read_decisions(written(tmp_path, f"{first}\n{second[:40]}")))) == 1
    with pytest.raises(RecordError, match=":1: not JSON"):
        list(read_decisions(written(tmp_path, f"{first[:40]}\n{second}\n")))


def test_names_of_a_record_are_printed_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever they hold: brackets are no markup, and nothing reaches the terminal but characters."""
    config = tmp_path / "new.yaml"
    config.write_text(NEW)
    (decision,) = recorded(OLD, "shop")
    path = written(tmp_path, json.dumps({"decision": {**decision, "rule": "[/x]\x1b[31m", "backend": "[red]b"}}))
    assert main(["replay", str(path), "--config", str(config)]) == 0
    said = capsys.readouterr().out
    assert "[/x][31m: 1 of 1 move" in said
    assert "[red]b" in said
    assert "\x1b" not in said


def test_words_of_another_version_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a health that this version does not know."""
    (decision,) = recorded(OLD, "s")
    decision["seen"]["backends"][0]["health"] = "dreaming"
    config = tmp_path / "new.yaml"
    config.write_text(NEW)
    path = written(tmp_path, json.dumps(decision))
    assert main(["replay", str(path), "--config", str(config)]) == 2
    assert "dreaming" not in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["file", "config"])
def test_a_missing_file_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str) -> None:
    """Of decisions or of configuration."""
    config, path = tmp_path / "new.yaml", written(tmp_path, "")
    config.write_text(NEW)
    (path if missing == "file" else config).unlink()
    assert main(["replay", str(path), "--config", str(config)]) == 2
    assert capsys.readouterr().err
