"""The running configuration as JSON, without its secrets."""

import json

from router_ext.config.changes import NO_CHANGES
from router_ext.config.loader import parse
from router_ext.config.masked import masked
from tests.unit.config.samples import DEFAULTS_WRITTEN_OUT, FOLDER, FULL, FULL_ENVIRON, MINIMAL, config

SECRETS = ("sk-inline-1", "sk-of-env-2", "pw-inline-3", "pw-of-env-4", "ab" * 32)


def test_no_secret_is_shown_however_it_came() -> None:
    """Keys and Redis URLs in the file become ***, those of the environment their variable's name."""
    text = FULL.replace('"env:OPENAI_KEY"', "sk-inline-1").replace('"env:REDIS"', "'rediss://u:pw-inline-3@h:1/2'")
    text = text.replace("lora_adapters: [sql]", "lora_adapters: [sql], api_key: env:KEY")
    inline = masked(config(text, {"KEY": "sk-of-env-2", "SESSION_KEY": "ab" * 32}))
    assert [backend["api_key"] for backend in inline["backends"]] == ["env:KEY", "***"]
    assert inline["server"]["sessions"]["redis_url"] == "***"
    assert inline["server"]["sessions"]["encryption_key"] == "env:SESSION_KEY"
    environ = {"OPENAI_KEY": "sk-of-env-2", "REDIS": "redis://u:pw-of-env-4@h", "SESSION_KEY": "ab" * 32}
    from_env = masked(config(FULL, environ))
    assert from_env["server"]["sessions"]["redis_url"] == "env:REDIS"
    for secret in SECRETS:
        assert secret not in json.dumps([inline, from_env])


def test_what_is_shown_reads_as_the_same_configuration() -> None:
    """Every key with every default written out; JSON is YAML."""
    for text, environ in ((FULL, FULL_ENVIRON), (DEFAULTS_WRITTEN_OUT, {}), (MINIMAL, {})):
        read = config(text, environ)
        assert config(json.dumps(masked(read)), environ) == read


def test_values_are_those_that_count() -> None:
    """Durations in seconds, sizes in bytes, lists of a set in order, nothing for what is not set."""
    shown = masked(config(FULL, FULL_ENVIRON))
    assert (shown["server"]["default_timeout"], shown["server"]["max_body_bytes"]) == (120.0, 16 * 2**20)
    assert shown["server"]["timezone"] == "Australia/Adelaide"
    assert shown["budgets"]["default"] == {"daily_limit_usd": 0.5, "action": "reject", "downgrade_target": ""}
    assert "api_key" not in shown["backends"][0]


def test_the_query_of_a_probe_is_not_shown() -> None:
    """Some engines take a key there."""
    text = FULL.replace("health_endpoint: /ready", "health_endpoint: /ready?key=sk-inline-5")
    shown = masked(config(text, FULL_ENVIRON))
    assert [item["health_endpoint"] for item in shown["backends"]][1:] == ["/ready?***"]


def test_changes_show_like_the_file() -> None:
    """What runs is shown, wherever it was written."""
    spec = {"url": "http://x", "type": "vllm", "model_name": "m", "api_key": "env:X_API_KEY"}
    changes = NO_CHANGES.with_backend("x", spec).without_backend("a")
    shown = masked(parse(MINIMAL, "router.yaml", FOLDER, {"X_API_KEY": "sk-of-env-2"}, changes=changes).config)
    assert [(item["name"], item["api_key"]) for item in shown["backends"]] == [("x", "env:X_API_KEY")]
