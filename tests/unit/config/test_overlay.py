"""The file with the changes of the admin API above it, read as one."""

from collections.abc import Mapping
from typing import Any

import pytest

from router_ext.config.changes import NO_CHANGES, Changes, FileNames
from router_ext.config.loader import ConfigError, LoadedConfig, data_dir, parse
from router_ext.config.sections import RouterConfig
from router_ext.model.secret import Secret
from tests.unit.config.samples import FOLDER, FULL, FULL_ENVIRON, MINIMAL, by_path

SPEC = {"url": "http://127.0.0.1:9", "type": "vllm", "model_name": "n"}
THREE = """\
backends:
  - {name: a, url: 'http://a', type: vllm, model_name: m}
  - {name: b, url: 'http://b', type: vllm, model_name: m}
  - {name: c, url: 'http://c', type: vllm, model_name: m}
rules:
  - {name: r, backends: [a]}
  - {name: s, match: {service: s}, priority: 1, backends: [c]}
budgets: {shop: {daily_limit_usd: 5}, default: {daily_limit_usd: 1}}
"""


def loaded(text: str, changes: Changes, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    """``text`` with ``changes`` above it."""
    return parse(text, "router.yaml", FOLDER, environ or {}, changes=changes)


def config(text: str, changes: Changes, environ: Mapping[str, str] | None = None) -> RouterConfig:
    """Its sections."""
    return loaded(text, changes, environ).config


def refused(changes: Changes, environ: Mapping[str, str] | None = None, text: str = THREE) -> dict[str, str]:
    """Messages by path about changes that must be refused."""
    with pytest.raises(ConfigError) as error:
        loaded(text, changes, environ)
    return by_path(error.value.problems)


def with_spec(**settings: Any) -> Changes:
    """One more backend, x, with more settings."""
    return NO_CHANGES.with_backend("x", {**SPEC, **settings})


# What is read


def test_without_changes_the_file_is_read_as_it_is() -> None:
    """An overlay of nothing."""
    assert config(FULL, NO_CHANGES, FULL_ENVIRON) == parse(FULL, "router.yaml", FOLDER, FULL_ENVIRON).config


def test_a_backend_is_read_like_one_of_the_file() -> None:
    """The same keys give the same backend, whichever way it comes."""
    settings: dict[str, Any] = {
        "aliases": ["fast"],
        "capabilities": ["vision"],
        "max_concurrent": 8,
        "cost_input_1m": 1e-07,
        "cost_output_1m": 2,
        "circuit_breaker": {"error_threshold": 3, "window_seconds": "20s"},
    }
    written = (
        "  - {name: x, url: 'http://127.0.0.1:9', type: vllm, model_name: n, aliases: [fast], capabilities: [vision], "
        "max_concurrent: 8, cost_input_1m: 0.0000001, cost_output_1m: 2, "
        "circuit_breaker: {error_threshold: 3, window_seconds: 20s}}\n"
    )
    assert config(MINIMAL, with_spec(**settings)) == config(MINIMAL + written, NO_CHANGES)


def test_what_replaces_stands_in_its_place_and_what_is_new_at_the_end() -> None:
    """Order counts where rules have one priority, and in the chain of all backends."""
    changes = NO_CHANGES.with_backend("x", SPEC).with_backend("b", SPEC).without_backend("c")
    changes = changes.with_rule("t", {"backends": ["x"]}).with_rule("r", {"backends": ["b"]}).without_rule("s")
    read = config(THREE, changes)
    assert [(item.name, item.model_name) for item in read.backends] == [("a", "m"), ("b", "n"), ("x", "n")]
    assert [(rule.name, rule.backends) for rule in read.rules] == [("r", ("b",)), ("t", ("x",))]
    assert read.defaults.fallback_chain == ("a", "b", "x")


def test_budgets_are_replaced_added_and_by_default_the_files() -> None:
    """By service."""
    changes = NO_CHANGES.with_budget("shop", {"daily_limit_usd": 7}).with_budget("new", {"daily_limit_usd": 0.5})
    assert {item.service: item.daily_limit_usd for item in config(THREE, changes).budgets} == {
        "shop": 7.0,
        "default": 1.0,
        "new": 0.5,
    }
    assert [item.service for item in config(MINIMAL, changes).budgets] == ["shop", "new"]


def test_sections_that_the_file_does_not_have_are_made() -> None:
    """A file may leave all of its backends to the API."""
    read = config(
        "server: {port: 9000}\nrules:\n", NO_CHANGES.with_backend("x", SPEC).with_rule("r", {"backends": ["x"]})
    )
    assert ([item.name for item in read.backends], [rule.name for rule in read.rules]) == (["x"], ["r"])


def test_a_name_from_the_environment_is_known() -> None:
    """The file's backend is replaced by its name, however that is written."""
    text = MINIMAL.replace("name: a", "name: env:NAME")
    read = config(text, NO_CHANGES.with_backend("a", SPEC), {"NAME": "a"})
    assert [item.model_name for item in read.backends] == ["n"]


def test_drained_names_that_are_no_backends_mean_nothing() -> None:
    """The backend may have left the file."""
    assert config(THREE, NO_CHANGES.with_drained("b").with_drained("z")).drained == {"b"}


def test_envoy_may_not_use_a_drained_backend_while_the_router_is_away() -> None:
    """It is left out of the cluster that fails open, and nothing else."""
    read = config(THREE, NO_CHANGES.with_drained("b"))
    assert [item.name for item in read.fail_open_backends] == ["a", "c"]
    assert [item.name for item in read.backends] == ["a", "b", "c"]


def test_draining_the_last_backend_that_envoy_may_use_alone_is_a_warning() -> None:
    """Whoever drains it should know what happens while the router is away."""
    two = NO_CHANGES.with_drained("a").with_drained("b")
    chain = "defaults.fallback_chain"
    assert chain not in by_path(loaded(THREE, two).warnings)
    assert "or is drained): while the router is down" in by_path(loaded(THREE, two.with_drained("c")).warnings)[chain]


def test_the_files_own_names_are_told() -> None:
    """Whatever stands above it."""
    changes = NO_CHANGES.with_backend("x", SPEC).without_backend("b").with_budget("new", {"daily_limit_usd": 1})
    assert loaded(THREE, changes).in_file == FileNames(
        frozenset("abc"), frozenset("rs"), frozenset({"shop", "default"})
    )


# What is said


def test_problems_name_the_change_and_no_line_of_the_file() -> None:
    """All of them in one message, with those of the file."""
    changes = with_spec(url="ftp://h", colour="red").with_rule("r", {"backends": []}).with_budget("shop", {})
    with pytest.raises(ConfigError) as error:
        loaded(THREE.replace("{service: s}", "{tier: -1}"), changes)
    assert str(error.value).splitlines() == [
        "admin API backends[x].colour: unknown key; known: name, url, type, model_name, aliases, lora_adapters, "
        "capabilities, max_concurrent, cost_input_1m, cost_cached_input_1m, cost_output_1m, api_key, health_endpoint, "
        "circuit_breaker",
        "admin API backends[x].url: the URL must start with http:// or https://",
        "admin API rules[r].backends: must not be empty",
        "admin API budgets[shop].daily_limit_usd: is required",
        "router.yaml:7: rules[1].match.tier: expected a whole number from 0 to 2147483647, got -1",
    ]


def test_what_of_the_file_is_not_in_force_is_a_warning_at_its_line() -> None:
    """Whoever reads the file sees what it does not do."""
    changes = NO_CHANGES.with_backend("b", SPEC).without_rule("r").with_budget("shop", {"daily_limit_usd": 9})
    said = {(item.path, item.line): item.message for item in loaded(THREE, changes).warnings}
    assert said["backends[1]", 3] == "the admin API has replaced backend 'b'"
    assert said["rules[0]", 6] == "the admin API has removed rule 'r'"
    assert said["budgets.shop", 8] == "the admin API has replaced budget 'shop'"


def test_doubts_stand_where_the_setting_is_written() -> None:
    """Places in lists move when something is removed; lines and paths do not."""
    text = THREE.replace("rules:\n", "defaults: {fallback_chain: [a]}\nrules:\n")
    said = {
        item.message: (item.path, item.line)
        for item in loaded(
            text, NO_CHANGES.without_backend("b").with_backend("x", SPEC).with_rule("t", {"backends": ["a"]})
        ).warnings
    }
    assert said["backend 'x' is used nowhere"] == ("admin API backends[x]", 0)
    assert said["never applies: rule 'r' takes all its requests"] == ("admin API rules[t]", 0)
    assert said[
        "backend 'c' has no cost_input_1m or no cost_output_1m: budgets count that as free; write 0 if it is"
    ] == (
        "backends[2]",
        4,
    )


def test_a_removed_backend_is_missed_where_it_is_needed() -> None:
    """In the file's own rules and chain."""
    text = THREE + "defaults: {fallback_chain: [a, b]}\n"
    assert refused(NO_CHANGES.without_backend("a").without_backend("b"), text=text) == {
        "rules[0].backends[0]": "unknown backend 'a'; known: c",
        "defaults.fallback_chain[0]": "unknown backend 'a'; known: c",
        "defaults.fallback_chain[1]": "unknown backend 'b'; known: c",
    }


def test_the_last_backend_cannot_be_removed() -> None:
    """A router without one has nothing to do."""
    assert refused(NO_CHANGES.without_backend("a"), text=MINIMAL) == {"backends": "must not be empty"}


@pytest.mark.parametrize("text", ["backends: 3\n", "backends: {a: b}\n", f"{MINIMAL}budgets: []\nrules: x\n"])
def test_sections_of_another_shape_are_reported_as_ever(text: str) -> None:
    """An overlay does not hide what is wrong with the file."""
    changes = NO_CHANGES.with_backend("x", SPEC).with_rule("r", {"backends": ["x"]}).with_budget("s", {})
    assert any("got" in message for message in refused(changes, text=text).values())


# What may not come by the API


def test_a_key_is_named_by_its_variable() -> None:
    """``env:NAME``, where NAME ends in _API_KEY."""
    read = config(MINIMAL, with_spec(api_key="env:LAB_API_KEY"), {"LAB_API_KEY": "sk-1"})
    assert read.backend("x").api_key == Secret("sk-1", "env:LAB_API_KEY")


@pytest.mark.parametrize(
    "key",
    [
        "sk-secret",
        "env:HOME",
        "env:ROUTER_API_TOKEN",
        "env:X_API_KEY_OLD",
        "env:_API_KEY x",
        "env:",
        "ENV:A_API_KEY",
        "",
    ],
)
def test_any_other_key_is_refused_without_a_look_at_the_environment(key: str) -> None:
    """The key itself would stand on disk; other variables are none of a caller's business. Nothing is quoted."""
    environ = {"HOME": "/root", "ROUTER_API_TOKEN": "t", "X_API_KEY_OLD": "k"}
    assert refused(with_spec(api_key=key), environ) == {
        "admin API backends[x].api_key": (
            "must be env:NAME, where NAME ends in _API_KEY: a key itself would stand on disk"
        )
    }


def test_no_other_value_comes_from_the_environment() -> None:
    """Not even to tell whether a variable is set."""
    changes = with_spec(url="env:SECRET", aliases=["env:SECRET", "ok"], circuit_breaker={"window_seconds": "env:NONE"})
    changes = changes.with_rule("t", {"backends": ["env:SECRET"]}).with_budget("s", {"daily_limit_usd": "env:SECRET"})
    message = "must not come from the environment: of a change only api_key may"
    assert refused(changes, {"SECRET": "http://secret"}) == dict.fromkeys(
        (
            "admin API backends[x].url",
            "admin API backends[x].aliases[0]",
            "admin API backends[x].circuit_breaker.window_seconds",
            "admin API rules[t].backends[0]",
            "admin API budgets[s].daily_limit_usd",
        ),
        message,
    )


def test_a_key_belongs_to_a_backend_and_nowhere_else() -> None:
    """The name of a key in another place is no way to the environment."""
    changes = NO_CHANGES.with_rule("t", {"backends": ["a"], "match": {"api_key": "env:X_API_KEY"}})
    assert refused(changes, {"X_API_KEY": "sk-1"}) == {
        "admin API rules[t].match.api_key": "must not come from the environment: of a change only api_key may"
    }


def test_text_stays_text() -> None:
    """A quoted number of JSON is none, as in the file; YAML in a text adds no key."""
    assert refused(with_spec(max_concurrent="8")) == {
        "admin API backends[x].max_concurrent": "expected a whole number from 1 to 2147483647, got '8'"
    }
    assert config(MINIMAL, with_spec(model_name="m, api_key: x")).backend("x").model_name == "m, api_key: x"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**30, 10**5000], ids=["nan", "inf", "large", "huge"])
def test_numbers_that_json_cannot_carry_are_refused(value: float) -> None:
    """Parsers of JSON let them through."""
    assert refused(with_spec(cost_input_1m=value)) == {
        "admin API backends[x].cost_input_1m": "is no JSON, or too large a number"
    }


def test_nothing_is_nested_too_deep() -> None:
    """A value of a thousand levels is refused before anything walks it."""
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert list(refused(with_spec(aliases=deep)).values()) == ["nested deeper than 24 levels"]


def test_odd_names_are_not_quoted_at_length() -> None:
    """A name that a caller chooses cannot forge lines of a log."""
    said = refused(NO_CHANGES.with_backend("a\nconfig_loaded", SPEC).with_budget("s" * 500, {}))
    assert all("\n" not in path and len(path) < 100 for path in said)


# Where the changes are


def test_the_folder_of_the_changes_is_known_before_the_file_is_valid() -> None:
    """It may lean on backends that only the changes know."""
    text = b"server: {data_dir: env:DATA, ports: 3}\nbackends: []\n"
    assert data_dir(text, "router.yaml", FOLDER, {"DATA": "/var/lib/router"}).as_posix() == "/var/lib/router"
    assert data_dir(text, "router.yaml", FOLDER, {}) == FOLDER / "data"
    assert data_dir(b"rules: []", "router.yaml", FOLDER, {}) == FOLDER / "data"
