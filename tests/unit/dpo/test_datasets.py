"""The converted file in the real ``datasets`` library, which TRL reads with."""

from pathlib import Path

import pytest

from router_ext.cli.main import main
from router_ext.dpo.pair import line_of
from tests.fakes.lines import PAIR, pair

CALLS = '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}]'
TOOLS = pair(
    {"role": "user", "content": "Ask\u2028f."},
    {"role": "assistant", "content": "", "tool_calls": CALLS},
    {"role": "tool", "content": "2", "tool_call_id": "c1"},
    chosen="ž",
)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library's caches are in the returned folder, and it asks nobody."""
    home = tmp_path / "hugging"
    for name in ("HF_HOME", "HF_DATASETS_CACHE", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(home))
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "1")
    return home


def _text() -> object:
    import datasets

    return datasets.Value("string")


def _converted(tmp_path: Path, *lines: bytes) -> Path:
    source, target = tmp_path / "pairs.jsonl", tmp_path / "trl.jsonl"
    source.write_bytes(b"".join(line + b"\n" for line in lines))
    assert main(["dpo", "convert", str(source), "--to", "trl", "--out", str(target)]) == 0
    return target


def _features(**optional: object) -> dict[str, object]:
    import datasets

    answer = {"role": _text(), "content": _text()}
    prompt = answer | optional
    return {"prompt": datasets.List(prompt), "chosen": datasets.List(answer), "rejected": datasets.List(answer)}


def test_plain_pairs_have_roles_and_contents_only(tmp_path: Path, offline: Path) -> None:
    """Three columns, each a list of messages."""
    import datasets

    target = _converted(tmp_path, line_of(PAIR), line_of(pair(chosen="11")))
    read = datasets.load_dataset("json", data_files=str(target), split="train", cache_dir=str(offline))
    assert dict(read.features) == _features()
    assert read[0] == {
        "prompt": [{"role": "user", "content": "Name a prime."}],
        "chosen": [{"role": "assistant", "content": "7"}],
        "rejected": [{"role": "assistant", "content": "9"}],
    }
    assert read["chosen"][1] == [{"role": "assistant", "content": "11"}]


@pytest.mark.parametrize("chunk_bytes", [10 << 20, 2048])
def test_tools_that_come_late_change_no_type(tmp_path: Path, offline: Path, chunk_bytes: int) -> None:
    """300 plain pairs, then one with tool calls: the library takes the types from its first chunk, and all rows fit."""
    import datasets

    target = _converted(tmp_path, *[line_of(PAIR)] * 300, line_of(TOOLS))
    read = datasets.load_dataset(
        "json", data_files=str(target), split="train", cache_dir=str(offline), chunksize=chunk_bytes
    )
    call = {"id": _text(), "type": _text(), "function": {"name": _text(), "arguments": _text()}}
    assert dict(read.features) == _features(tool_calls=datasets.List(call), tool_call_id=_text())
    assert len(read) == 301
    assert read[0]["prompt"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            "tool_call_id": None,
        },
        {"role": "tool", "content": "2", "tool_calls": None, "tool_call_id": "c1"},
    ]
    assert (read[0]["prompt"][0]["content"], read[0]["chosen"][0]["content"]) == ("Ask\u2028f.", "ž")
    assert all(row["prompt"][0]["content"] == "Name a prime." for row in read.select(range(1, 301)))
