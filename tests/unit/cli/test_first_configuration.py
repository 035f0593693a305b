"""The configuration that ``router-ext init`` writes, for any combination of what may be found."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from router_ext.cli.starting.document import configuration
from router_ext.cli.starting.engines import Engine, Model, Place
from router_ext.cli.starting.providers import PROVIDERS, Key, keys_in
from router_ext.config.loader import LoadedConfig, parse
from router_ext.model.backend import BackendType

HERE = "127.0.0.1"
VLLM = Engine(Place(HERE, 8000), BackendType.VLLM, (Model("org/base", ("small",), ("tuned",)),))
SGLANG = Engine(Place(HERE, 30000), BackendType.SGLANG, (Model("org/base"),))
LLAMACPP = Engine(Place(HERE, 8080), BackendType.LLAMACPP, (Model("/models/m.gguf"),), slots=4, vision=True)
OLLAMA = Engine(Place(HERE, 11434), BackendType.OLLAMA, (Model("llama3.2:latest"), Model("qwen3:8b")))
OTHER = Engine(Place("gpu-1.example", 8000), BackendType.OPENAI, (Model("m"),))
IPV6 = Engine(Place("fd00::1", 8000), BackendType.VLLM, (Model("m"),))
LOCKED = Engine(Place(HERE, 8001), BackendType.VLLM, wants_key=True)

ENGINES = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMACPP, "ollama": OLLAMA, "other": OTHER, "locked": LOCKED}
VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
SETTING = re.compile(r"^( *)# ( *(?:- )?[a-z_0-9]+: .*)$", re.MULTILINE)


def _environ(variables: tuple[str, ...]) -> Mapping[str, str]:
    return {name: f"key-of-{name.lower()}" for name in variables}


def _loaded(text: str, environ: Mapping[str, str]) -> LoadedConfig:
    return parse(text, "router.yaml", Path("/somewhere"), environ)


def _combinations(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [some for number in range(len(names) + 1) for some in itertools.combinations(names, number)]


@pytest.mark.parametrize("engines", _combinations(tuple(ENGINES)), ids="-".join)
def test_any_combination_is_a_valid_configuration(engines: tuple[str, ...]) -> None:
    """Also with every setting switched on that stands in a comment. No key's value gets into it."""
    served = sum(len(ENGINES[name].models) for name in engines)
    for variables in _combinations(VARIABLES):
        environ = _environ(variables)
        keys, unusable = keys_in(environ)
        text = configuration([ENGINES[name] for name in engines], keys)
        assert unusable == []
        assert "key-of" not in text
        assert len(_loaded(text, environ).config.backends) == (served + len(keys) or 1)
        _loaded(SETTING.sub(r"\1\2", text), {**environ, "VLLM_8001_API_KEY": "k"})


def test_an_engine_is_written_with_all_that_it_said() -> None:
    """Names, adapters, how many requests it takes, and what it can do."""
    vllm, llamacpp = _loaded(configuration([VLLM, LLAMACPP], []), {}).config.backends
    assert (vllm.name, str(vllm.endpoint), vllm.model_name) == ("vllm-8000", "http://127.0.0.1:8000", "org/base")
    assert (vllm.aliases, vllm.lora_adapters, vllm.max_concurrent) == (frozenset({"small"}), frozenset({"tuned"}), 64)
    assert (llamacpp.type, llamacpp.max_concurrent, llamacpp.capabilities) == (
        BackendType.LLAMACPP,
        4,
        frozenset({"vision"}),
    )


def test_each_model_of_an_engine_is_a_backend() -> None:
    """With the model in its name."""
    names = [backend.name for backend in _loaded(configuration([OLLAMA], []), {}).config.backends]
    assert names == ["ollama-11434-llama3.2-latest", "ollama-11434-qwen3-8b"]


def test_an_engine_elsewhere_has_its_host_in_its_name() -> None:
    """So that two machines do not collide; an IPv6 address gets its brackets."""
    backends = _loaded(configuration([OTHER, IPV6], []), {}).config.backends
    assert [backend.name for backend in backends] == ["openai-gpu-1.example-8000", "vllm-fd00-1-8000"]
    assert str(backends[1].endpoint) == "http://[fd00::1]:8000"


def test_names_that_come_out_alike_get_numbers() -> None:
    """Also those that are cut to what a name may have."""
    models = (Model("a:b"), Model("a/b"), Model("x" * 80 + "1"), Model("x" * 80 + "2"))
    engine = Engine(Place(HERE, 11434), BackendType.OLLAMA, models)
    names = [backend.name for backend in _loaded(configuration([engine], []), {}).config.backends]
    assert names[:2] == ["ollama-11434-a-b", "ollama-11434-a-b-2"]
    assert [len(name) for name in names[2:]] == [63, 63]
    assert names[3].endswith("x-2")


def test_requests_leave_the_machine_by_a_rule_only() -> None:
    """Beside engines a provider is asked for its own models; prompts do not go there because an engine is down."""
    environ = _environ(("OPENAI_API_KEY",))
    config = _loaded(configuration([VLLM], keys_in(environ)[0]), environ).config
    assert config.defaults.fallback_chain == ("vllm-8000",)
    assert [(rule.match.model, rule.backends) for rule in config.rules] == [("gpt-*", ("openai",))]


def test_without_engines_the_providers_are_the_chain() -> None:
    """In a fixed order."""
    environ = _environ(("GEMINI_API_KEY", "OPENAI_API_KEY"))
    config = _loaded(configuration([], keys_in(environ)[0]), environ).config
    assert config.defaults.fallback_chain == ("openai", "gemini")


def test_an_engine_with_a_key_stands_in_a_comment() -> None:
    """With the name of a variable for the key."""
    text = configuration([VLLM, LOCKED], [])
    assert "# - name: vllm-8001" in text
    assert "env:VLLM_8001_API_KEY" in text


@pytest.mark.parametrize(
    "value", ["two words", "line\n", "\u00e4", "${KEY}", "k" * 8193], ids=["space", "line", "umlaut", "braces", "long"]
)
def test_a_variable_that_holds_no_key_is_told_by_its_name(value: str) -> None:
    """The configuration would be refused with it."""
    assert keys_in({"OPENAI_API_KEY": value, "ANTHROPIC_API_KEY": ""}) == ([], ["OPENAI_API_KEY"])


def test_the_second_variable_of_a_provider_counts_when_the_first_does_not() -> None:
    """Gemini's key goes by two names."""
    gemini = PROVIDERS[2]
    assert keys_in({"GOOGLE_API_KEY": "k"})[0] == [Key(gemini, "GOOGLE_API_KEY")]
    assert keys_in({"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b"})[0] == [Key(gemini, "GEMINI_API_KEY")]
    assert keys_in({"GEMINI_API_KEY": "a b", "GOOGLE_API_KEY": "b"}) == (
        [Key(gemini, "GOOGLE_API_KEY")],
        ["GEMINI_API_KEY"],
    )
