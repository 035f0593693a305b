"""CONF-05: numbers without a possible meaning must be refused, each with a clear error."""

from pathlib import Path

import pytest

from router_ext.config.changes import NO_CHANGES
from router_ext.config.loader import ConfigError, parse

TEXT = """\
server: {queue_scrape_interval: 0, health_check_interval: -1, default_timeout: .nan}
backends:
- name: a
  url: http://a
  type: vllm
  model_name: m
  circuit_breaker: {error_threshold: 0, window_seconds: -1}
rules: [{name: r, backends: [a], max_ttft_ms: .nan}]
budgets: {s: {daily_limit_usd: '10'}}
"""


def test_every_number_out_of_range_is_reported_at_its_key() -> None:
    """Zero, negative, not finite and quoted numbers: one problem each, all in one error."""
    with pytest.raises(ConfigError) as error:
        parse(TEXT, "router.yaml", Path("/etc/router"), {})
    duration = "expected a duration like 30s, 5m, 1h30m or 250ms, from 1ms to"
    assert [(problem.path, problem.message) for problem in error.value.problems] == [
        ("server.health_check_interval", f"{duration} 31536000s, got -1"),
        ("server.default_timeout", f"{duration} 31536000s, got .nan"),
        ("server.queue_scrape_interval", f"{duration} 31536000s, got 0"),
        (
            "backends[0].circuit_breaker.error_threshold",
            "expected a whole number from 1 to 2147483647, got 0",
        ),
        ("backends[0].circuit_breaker.window_seconds", f"{duration} 86400s, got -1"),
        ("rules[0].max_ttft_ms", "expected a whole number from 0 to 2147483647, got .nan"),
        ("budgets.s.daily_limit_usd", "expected a number above 0 and up to 1000000000, got '10'"),
    ]


def test_changes_of_the_admin_api_meet_the_same_checks() -> None:
    """Start, reload and API share one validation: the numbers above, each at the place of its change."""
    spec = {"url": "http://a", "type": "vllm", "model_name": "m"}
    breaker = {"error_threshold": 0, "window_seconds": -1}
    changes = (
        NO_CHANGES.with_backend("a", {**spec, "circuit_breaker": breaker})
        .with_rule("r", {"backends": ["a"], "max_ttft_ms": -0.5})
        .with_budget("s", {"daily_limit_usd": "10"})
    )
    with pytest.raises(ConfigError) as error:
        parse("rules: []", "router.yaml", Path("/etc/router"), {}, changes=changes)
    duration = "expected a duration like 30s, 5m, 1h30m or 250ms, from 1ms to"
    assert [(problem.path, problem.message) for problem in error.value.problems] == [
        (
            "admin API backends[a].circuit_breaker.error_threshold",
            "expected a whole number from 1 to 2147483647, got 0",
        ),
        ("admin API backends[a].circuit_breaker.window_seconds", f"{duration} 86400s, got -1"),
        ("admin API rules[r].max_ttft_ms", "expected a whole number from 0 to 2147483647, got -0.5"),
        ("admin API budgets[s].daily_limit_usd", "expected a number above 0 and up to 1000000000, got '10'"),
    ]
