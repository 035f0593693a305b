"""DPO-01: examples disagreed on whether the answers of a pair hold the prompt, and trainers split them wrongly."""

import json
from pathlib import Path

from router_ext.cli.main import main
from router_ext.dpo.pair import Unfit, line_of, messages_of
from tests.fakes.lines import pair

HYDRATED = b'[{"role":"system","content":"Be brief."},{"role":"user","content":"Name a prime."}]'


def test_the_prompt_is_the_hydrated_request_and_the_answers_are_completions_only(tmp_path: Path) -> None:
    """In the file of the router, and as messages of the assistant in the trainer's file. That one is loaded with the
    trainer's own reader in ``tests/unit/dpo/test_datasets.py``.
    """
    prompt = messages_of(HYDRATED)
    assert not isinstance(prompt, Unfit)
    source, target = tmp_path / "pairs.jsonl", tmp_path / "trl.jsonl"
    source.write_bytes(line_of(pair(*prompt, chosen="7", rejected="9")) + b"\n")
    assert main(["dpo", "check", str(source)]) == 0
    assert json.loads(source.read_bytes())["prompt"] == json.loads(HYDRATED)
    assert main(["dpo", "convert", str(source), "--to", "trl", "--out", str(target)]) == 0
    assert json.loads(target.read_bytes()) == {
        "prompt": json.loads(HYDRATED),
        "chosen": [{"role": "assistant", "content": "7"}],
        "rejected": [{"role": "assistant", "content": "9"}],
    }


def test_a_prompt_that_ends_with_an_answer_is_no_prompt() -> None:
    """The last role of prompt and answer together is the assistant's, once."""
    assert messages_of(HYDRATED[:-1] + b',{"role":"assistant","content":"7"}]') is Unfit.LAST_ROLE
