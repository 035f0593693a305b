"""Warnings: valid settings that are probably not meant."""

from dataclasses import replace
from time import process_time

import pytest

from router_ext.config import check
from router_ext.config.reading import Reading
from router_ext.model.rule import Match, Rule
from tests.unit.config.samples import FOLDER, FULL, FULL_ENVIRON, MINIMAL, by_path, loaded, with_server

BACKENDS = """\
backends:
  - {name: a, url: "http://a", type: vllm, model_name: m, aliases: [fast]}
  - {name: b, url: "http://b", type: vllm, model_name: m}
  - {name: c, url: "http://c", type: openai, model_name: gpt, api_key: env:KEY}
"""


def warnings(text: str) -> dict[str, str]:
    """Warnings about ``text`` by path."""
    return by_path(loaded(text, {"KEY": "k", **FULL_ENVIRON}).warnings)


def test_a_plain_file_has_no_warnings() -> None:
    """One local backend that serves all names."""
    assert warnings(MINIMAL) == {}


def test_without_a_backend_for_fail_open_the_consequence_is_named() -> None:
    """Every backend of the chain has a key: Envoy alone can use none."""
    assert warnings(BACKENDS + "defaults: {fallback_chain: [c]}\nrules: [{name: r, backends: [a, b]}]") == {
        "defaults.fallback_chain": "no backend of the chain can be used without the router (each needs a key or a path "
        "of its own, or is drained): while the router is down Envoy answers 503"
    }


def test_names_that_fail_open_cannot_serve_are_listed() -> None:
    """``gpt`` is served by no backend that Envoy may use alone, ``fast`` by one of two."""
    messages = [warning.message for warning in loaded(BACKENDS, {"KEY": "k"}).warnings]
    start = "while the router is down, requests for"
    assert messages == [
        f"{start} 'gpt' may reach a backend that does not serve them: "
        "no backend that can be used without the router serves them",
        f"{start} 'fast' may reach a backend that does not serve them: "
        "not every backend that can be used without the router serves them",
    ]


def test_an_admin_api_that_others_can_reach_is_a_warning() -> None:
    """Loopback in any spelling is fine."""
    assert list(warnings(with_server("admin_host: 0.0.0.0"))) == ["server.admin_host"]
    for host in ("localhost", "127.0.0.9", "'::1'"):
        assert warnings(with_server(f"admin_host: {host}")) == {}


IN_CLEAR = "conversations go to another machine in clear text: use rediss:// or encryption_key"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("redis_url: 'redis://redis:6379'", IN_CLEAR),
        ("redis_url: 'redis://10.0.0.1'", IN_CLEAR),
        ("redis_url: 'redis://redis', encryption_key: env:SESSION_KEY", None),
        ("redis_url: 'rediss://redis'", None),
        ("redis_url: 'redis://127.0.0.1'", None),
        ("redis_url: 'unix:///run/redis.sock'", None),
    ],
)
def test_conversations_in_clear_text_on_the_network_are_a_warning(settings: str, message: str | None) -> None:
    """TLS, encryption or a Redis on this machine keep others from reading them; without sessions there are none."""
    path = "server.sessions.redis_url"
    assert warnings(with_server(f"sessions: {{enabled: true, store: redis, {settings}}}")).get(path) == message
    assert warnings(with_server(f"sessions: {{enabled: false, store: redis, {settings}}}")) == {}


def test_a_password_of_redis_in_the_file_is_a_warning() -> None:
    """It works, but it is said where it should be; a URL without a password may stand in the file."""
    text = with_server("sessions: {store: redis, redis_url: 'rediss://:hunter2@redis'}")
    assert warnings(text) == {
        "server.sessions.redis_url": "the password stands in the file: "
        "move the URL to the environment and write env:NAME"
    }
    assert warnings(text.replace(":hunter2@", "router@")) == {}
    assert warnings(text.replace("'rediss://:hunter2@redis'", "env:REDIS")) == {}


def test_a_store_smaller_than_the_largest_request_is_a_warning() -> None:
    """A conversation that a client can send would be refused by the store; equal sizes are fine."""
    text = with_server("max_body_bytes: 1MiB, sessions: {enabled: true, max_bytes: 1048575}")
    assert list(warnings(text)) == ["server.sessions.max_bytes"]
    assert warnings(text.replace("1048575", "1048576")) == {}


def test_a_rule_behind_a_rule_that_takes_all_its_requests_is_a_warning() -> None:
    """Equal or wider conditions with a higher priority, or with the same one earlier in the file."""
    text = f"""{MINIMAL}rules:
  - {{name: narrow, priority: 1, match: {{service: s, model: x}}, backends: [a]}}
  - {{name: other, priority: 1, match: {{model: x}}, backends: [a]}}
  - {{name: wide, priority: 2, match: {{service: s}}, backends: [a]}}
  - {{name: late, priority: 2, match: {{service: s}}, backends: [a]}}
"""
    assert warnings(text) == {
        "rules[0]": "never applies: rule 'wide' takes all its requests",
        "rules[3]": "never applies: rule 'wide' takes all its requests",
    }


def test_many_rules_are_looked_through_in_a_moment() -> None:
    """Each change through the admin API does it anew, beside requests that wait: the time grows with the number."""
    rules = [Rule(name=f"r{number}", match=Match(service=f"s{number}"), backends=("a",)) for number in range(4000)]
    late = Rule(name="late", match=Match(service="s7", model="x"), backends=("a",))
    config = replace(loaded(MINIMAL, {}).config, rules=(*rules, late))
    began = process_time()
    found = list(check.warnings(config, Reading({}, FOLDER), lambda path: (path, 0)))
    assert process_time() - began < 1.0
    assert [item.message for item in found if item.path == "rules[4000]"] == [
        "never applies: rule 'r7' takes all its requests"
    ]


def test_a_backend_that_is_used_nowhere_is_a_warning() -> None:
    """With a chain that leaves it out and no rule for it."""
    text = BACKENDS + "defaults: {fallback_chain: [a]}\nrules: [{name: r, backends: [c]}]"
    assert warnings(text)["backends[1]"] == "backend 'b' is used nowhere"
    assert "backends[2]" not in warnings(text)


@pytest.mark.parametrize(
    ("prices", "doubtful"),
    [("", True), (", cost_input_1m: 1", True), (", cost_output_1m: 1", True)]
    + [(f", cost_input_1m: {free}, cost_output_1m: {free}", False) for free in (0, 1)],
)
def test_a_backend_without_prices_under_a_budget_is_a_warning(prices: str, doubtful: bool) -> None:
    """Its calls would count as free. Both prices are needed, and 0 is one; without budgets nobody asks for them."""
    text = MINIMAL.replace("model_name: m", "model_name: m" + prices)
    message = "backend 'a' has no cost_input_1m or no cost_output_1m: budgets count that as free; write 0 if it is"
    assert warnings(text + "budgets: {s: {daily_limit_usd: 1}}") == ({"backends[0]": message} if doubtful else {})
    assert warnings(text) == {}


def test_warnings_know_their_line() -> None:
    """They are sorted by it."""
    text = FULL.replace("admin_host: 127.0.0.1", "admin_host: 0.0.0.0").replace("env:OPENAI_KEY", "sk-1")
    found = loaded(text, FULL_ENVIRON).warnings
    assert [warning.line for warning in found] == sorted(warning.line for warning in found)
    assert [(warning.path, warning.line) for warning in found[:2]] == [
        ("server.admin_host", 4),
        ("backends[1].api_key", 31),
    ]
