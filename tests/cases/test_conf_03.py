"""CONF-03: a variable that is not set must never leave its placeholder in a key or URL."""

from pathlib import Path

import pytest

from router_ext.config.changes import NO_CHANGES
from router_ext.config.loader import ConfigError, parse

PLACEHOLDERS = """\
backends:
- {name: a, url: 'http://${HOST_NOT_SET}:8000', type: vllm, model_name: m, api_key: '${KEY_NOT_SET}'}
- {name: b, url: 'http://b:8000', type: vllm, model_name: m, api_key: '${X:-default}'}
- {name: c, url: 'http://c:8000', type: vllm, model_name: 'costs $5 and ${not closed', note: '${x'}
"""

VARIABLES = """\
backends:
- {name: a, url: 'env:URL_NOT_SET', type: vllm, model_name: m, api_key: 'env:KEY_NOT_SET'}
- {name: b, url: 'http://b:8000', type: vllm, model_name: m, api_key: 'env:EMPTY_VAR'}
"""


def _problems(text: str, environ: dict[str, str]) -> list[tuple[int, str, str]]:
    with pytest.raises(ConfigError) as error:
        parse(text, "router.yaml", Path("/etc/router"), environ)
    return [(problem.line, problem.path, problem.message) for problem in error.value.problems]


def test_placeholders_of_other_tools_are_refused_in_keys_and_urls() -> None:
    """``${NAME}`` is not replaced, whatever the environment holds; elsewhere ``$`` is an ordinary character."""
    assert _problems(PLACEHOLDERS, {"HOST_NOT_SET": "h"}) == [
        (2, "backends[0].url", "the URL holds '${', which is not replaced: write env:NAME as the whole value"),
        (2, "backends[0].api_key", "the key holds '${', which is not replaced: write env:NAME as the whole value"),
        (3, "backends[1].api_key", "the key holds '${', which is not replaced: write env:NAME as the whole value"),
        (
            4,
            "backends[2].note",
            "unknown key; known: name, url, type, model_name, aliases, lora_adapters, capabilities, "
            "max_concurrent, cost_input_1m, cost_cached_input_1m, cost_output_1m, api_key, health_endpoint, "
            "circuit_breaker",
        ),
    ]


def test_missing_and_empty_variables_are_all_listed_by_name() -> None:
    """The load fails with every name at once and without any value."""
    assert _problems(VARIABLES, {"EMPTY_VAR": ""}) == [
        (2, "backends[0].url", "environment variable URL_NOT_SET is not set"),
        (2, "backends[0].api_key", "environment variable KEY_NOT_SET is not set"),
        (3, "backends[1].api_key", "environment variable EMPTY_VAR is empty"),
    ]


def test_a_value_with_yaml_in_it_stays_one_value() -> None:
    """Substitution happens after parsing: a colon or a line end cannot add a key."""
    text = "backends: [{name: a, url: 'http://a', type: vllm, model_name: env:MODEL}]"
    read = parse(text, "router.yaml", Path("/etc/router"), {"MODEL": "m, api_key: stolen"})
    assert read.config.backends[0].model_name == "m, api_key: stolen"
    assert read.config.backends[0].api_key is None
    assert _problems(text, {"MODEL": "m\napi_key: x"})[0][1] == "backends[0].model_name"


def test_a_change_of_the_admin_api_leaves_no_placeholder_and_reads_no_variable() -> None:
    """Missing variables are listed by name; every other way to the environment is refused."""
    changes = NO_CHANGES.with_backend("a", {"url": "http://${HOST}", "type": "vllm", "model_name": "m"})
    changes = changes.with_backend(
        "b", {"url": "http://b", "type": "vllm", "model_name": "m", "api_key": "env:B_API_KEY"}
    )
    with pytest.raises(ConfigError) as error:
        parse("rules: []", "router.yaml", Path("/etc/router"), {"HOST": "h"}, changes=changes)
    assert [(problem.path, problem.message) for problem in error.value.problems] == [
        (
            "admin API backends[a].url",
            "the URL holds '${', which is not replaced: write env:NAME as the whole value",
        ),
        ("admin API backends[b].api_key", "environment variable B_API_KEY is not set"),
    ]
    changes = changes.with_backend("a", {"url": "env:HOST", "type": "vllm", "model_name": "${HOST}"})
    with pytest.raises(ConfigError, match="must not come from the environment"):
        parse("rules: []", "router.yaml", Path("/etc/router"), {"HOST": "http://h", "B_API_KEY": "k"}, changes=changes)
