"""Values from the environment: ``env:NAME`` and the variables that stand above the file."""

from pathlib import Path

import pytest

from router_ext.config.loader import load
from router_ext.model.secret import Secret
from tests.unit.config.samples import (
    FULL,
    FULL_ENVIRON,
    MINIMAL,
    config,
    loaded,
    refused,
    with_backend,
    with_server,
    with_url,
)


def test_env_gives_any_value() -> None:
    """Text, numbers, flags and durations are read from variables as they would be from the file."""
    text = """\
server: {port: env:PORT, queue_aware_routing: env:QUEUE, default_timeout: env:TIMEOUT, max_body_bytes: "env:BODY"}
backends: [{name: env:NAME, url: env:URL, type: env:TYPE, model_name: env:MODEL}]
"""
    environ = {
        "PORT": "9000",
        "QUEUE": "true",
        "TIMEOUT": "2m",
        "BODY": "1KiB",
        "NAME": "a",
        "URL": "http://h",
        "TYPE": "vllm",
        "MODEL": "3.1",
    }
    read = config(text, environ)
    assert (read.server.port, read.server.queue_aware_routing) == (9000, True)
    assert (read.server.default_timeout_s, read.server.max_body_bytes) == (120.0, 1024)
    assert (read.backends[0].name, read.backends[0].model_name) == ("a", "3.1")


def test_a_variable_cannot_change_the_structure() -> None:
    """Its text is put in after parsing, so YAML in it stays text."""
    value = "m, api_key: x"
    assert config(MINIMAL.replace("model_name: m", "model_name: env:M"), {"M": value}).backends[0].model_name == value


def test_missing_variables_are_all_listed_by_name() -> None:
    """Each is a problem of its own."""
    text = MINIMAL.replace("model_name: m", "model_name: env:M1, api_key: env:K1")
    assert refused(text) == {
        "backends[0].model_name": "environment variable M1 is not set",
        "backends[0].api_key": "environment variable K1 is not set",
    }


def test_an_empty_variable_is_no_key_and_no_url() -> None:
    """A request would otherwise go out without the key."""
    assert refused(with_backend("api_key: env:E"), {"E": ""}) == {
        "backends[0].api_key": "environment variable E is empty"
    }
    assert list(refused(with_url("env:E"), {"E": ""})) == ["backends[0].url"]


def test_a_key_remembers_its_variable_and_hides_its_value() -> None:
    """Only the source may be printed."""
    key = config(with_backend("api_key: env:KEY"), {"KEY": "sk-1"}).backends[0].api_key
    assert key == Secret("sk-1", "env:KEY")
    assert str(key) == "<secret from env:KEY>"


def test_an_inline_key_is_accepted_with_a_warning() -> None:
    """A key in the file works, but it is said where it should be."""
    read = loaded(with_backend("api_key: sk-1"))
    assert read.config.backends[0].api_key == Secret("sk-1", "inline")
    warning = next(warning for warning in read.warnings if warning.path == "backends[0].api_key")
    assert (warning.line, warning.message) == (
        2,
        "the key stands in the file: move it to the environment and write env:NAME",
    )


def test_four_variables_stand_above_the_file() -> None:
    """They replace what the file says; a relative path is below the file's folder."""
    environ = {
        **FULL_ENVIRON,
        "ROUTER_PORT": "9999",
        "SESSION_MAX_SIZE": "7",
        "SESSION_TTL_SECONDS": "90",
        "DPO_OUTPUT_PATH": "out/pairs.jsonl",
    }
    for text in (FULL, MINIMAL):
        read = config(text, environ)
        assert read.server.port == 9999
        assert (read.server.sessions.max_sessions, read.server.sessions.ttl_s) == (7, 90.0)
        assert read.quality_gate.dpo_export.output_path == Path("/etc/router/out/pairs.jsonl")


def test_an_empty_variable_leaves_the_file_as_it_is() -> None:
    """Compose files set variables to nothing."""
    assert config(with_server("port: 9000"), {"ROUTER_PORT": ""}).server.port == 9000


@pytest.mark.parametrize(
    ("name", "value"),
    [("ROUTER_PORT", "65536"), ("ROUTER_PORT", "http"), ("SESSION_MAX_SIZE", "0"), ("SESSION_TTL_SECONDS", "-1")],
)
def test_a_bad_variable_is_a_problem_of_its_own(name: str, value: str) -> None:
    """It has no line in the file."""
    assert list(refused(MINIMAL, {name: value})) == [f"env {name}"]


def test_a_port_from_a_variable_must_differ_too() -> None:
    """8051 is the default egress port."""
    assert refused(MINIMAL, {"ROUTER_PORT": "8051"}) == {"env ROUTER_PORT": "the same port as server.egress_port"}


def test_a_variable_over_a_section_of_the_wrong_kind_leaves_its_problem() -> None:
    """``server: 5`` is still reported."""
    assert refused("server: 5\n" + MINIMAL, {"ROUTER_PORT": "9000"}) == {
        "server": "expected keys with values, got a single value"
    }


def test_paths_are_below_the_folder_of_the_file(tmp_path: Path) -> None:
    """The working folder plays no part, and the digest is that of the file's bytes."""
    file = tmp_path / "router.yaml"
    file.write_text(MINIMAL)
    read = load(file, {})
    assert read.config.server.envoy_dir == tmp_path / "envoy"
    assert read.config.quality_gate.dpo_export.output_path == tmp_path / "dpo_training_data.jsonl"
    assert read.digest == loaded(MINIMAL).digest
    assert len(read.digest) == 64
