"""What a whole file becomes, and what each setting accepts."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from router_ext.config.sections import (
    AbTest,
    Budget,
    Defaults,
    DpoExport,
    KvPinning,
    OnExhausted,
    QualityGate,
    RateLimit,
    RouterConfig,
    Server,
    Sessions,
    StoreKind,
    Streaming,
    UnixAddress,
    UsageMode,
)
from router_ext.model.backend import Backend, BackendType, CircuitBreaker, Endpoint
from router_ext.model.gate import Checks
from router_ext.model.rule import Match, Rule
from router_ext.model.secret import Secret
from tests.unit.config.samples import (
    DEFAULTS_WRITTEN_OUT,
    FOLDER,
    FULL,
    FULL_ENVIRON,
    MINIMAL,
    config,
    refused,
    with_backend,
    with_server,
)


def test_every_setting_of_a_full_file_is_read() -> None:
    """Each key of the file ends in its attribute: seconds, bytes and dollars."""
    assert config(FULL, FULL_ENVIRON) == RouterConfig(
        server=Server(
            port=8150,
            egress_port=8151,
            admin_host="127.0.0.1",
            admin_port=8152,
            envoy_admin_port=8153,
            processor_address=UnixAddress(Path("/etc/router/run/p.sock")),
            envoy_dir=Path("/etc/router/envoy-files"),
            data_dir=Path("/var/lib/router"),
            health_check_interval_s=20.0,
            default_timeout_s=120.0,
            stream_idle_timeout_s=5400.0,
            message_timeout_s=0.25,
            max_body_bytes=16_777_216,
            max_connections=5000,
            kv_pinning=KvPinning(enabled=True, ttl_s=1200.0, max_entries=500, max_queue_ratio=1.5),
            queue_aware_routing=True,
            queue_scrape_interval_s=2.5,
            timezone=ZoneInfo("Australia/Adelaide"),
            usage=UsageMode.EXACT,
            sessions=Sessions(
                enabled=True,
                store=StoreKind.REDIS,
                redis_url=Secret("rediss://router:pw@redis.internal:6380/2", "env:REDIS"),
                encryption_key=Secret("00" * 31 + "ff", "env:SESSION_KEY"),
                ttl_s=10_800.0,
                max_sessions=10,
                max_bytes=1_073_741_824,
                max_context_tokens=4000,
                store_timeout_s=0.1,
            ),
        ),
        backends=(
            Backend(
                name="a",
                endpoint=Endpoint("http", "127.0.0.1", 8000),
                type=BackendType.VLLM,
                model_name="m",
                aliases=frozenset({"fast"}),
                lora_adapters=frozenset({"sql"}),
                capabilities=frozenset({"json_output"}),
                max_concurrent=8,
                cost_input_1m=0.01,
                cost_cached_input_1m=0.005,
                cost_output_1m=0.02,
            ),
            Backend(
                name="b",
                endpoint=Endpoint("https", "api.openai.com", 443, "/v1"),
                type=BackendType.OPENAI,
                model_name="gpt",
                cost_input_1m=2.5,
                cost_output_1m=10.0,
                api_key=Secret("sk-1", "env:OPENAI_KEY"),
                health_endpoint="/ready",
                circuit_breaker=CircuitBreaker(error_threshold=3, window_s=20.0),
            ),
        ),
        rules=(
            Rule(
                name="r",
                priority=100,
                match=Match("shop", "chat", 2, "gpt-*", "sql", "high", "text"),
                backends=("a", "b"),
                max_cost_1m=5.0,
                required_capabilities=frozenset({"json_output"}),
                max_ttft_ms=300,
            ),
        ),
        defaults=Defaults(("b", "a")),
        budgets=(Budget("my-service", 50.0, "downgrade", "a", UsageMode.ESTIMATE), Budget("default", 0.5)),
        rate_limits=(RateLimit("my-service", 2.5, 10), RateLimit("default", 1.0, 1)),
        quality_gate=QualityGate(
            enabled=True,
            mode="parallel",
            fallback_backend="b",
            sample_rate=0.5,
            streaming=Streaming.OBSERVE,
            on_exhausted=OnExhausted.ERROR,
            schema_timeout_s=0.25,
            checks=Checks(min_length=1, min_tokens=2, valid_json=True, no_refusal=True),
            dpo_export=DpoExport(
                enabled=True,
                output_path=Path("/etc/router/pairs.jsonl"),
                max_file_size_mb=5,
                max_files=3,
                redact=True,
            ),
        ),
        ab_tests=(
            AbTest(
                "t",
                Match(service="shop"),
                "a",
                "b",
                10.0,
                active=False,
                mode="shadow",
                max_inflight=4,
                similarity_threshold=0.5,
            ),
        ),
        shadow_log_path=Path("/etc/router/shadows.jsonl"),
    )


def test_everything_but_one_backend_may_be_left_out() -> None:
    """Defaults are those of the sections; folders and files are below the configuration file's folder."""
    read = config(MINIMAL)
    assert read == RouterConfig(
        server=Server(
            processor_address=UnixAddress(FOLDER / "run/processor.sock"),
            envoy_dir=FOLDER / "envoy",
            data_dir=FOLDER / "data",
        ),
        backends=(Backend("a", Endpoint("http", "127.0.0.1", 8000), BackendType.VLLM, "m"),),
        defaults=Defaults(("a",)),
        quality_gate=QualityGate(dpo_export=DpoExport(output_path=FOLDER / "dpo_training_data.jsonl")),
    )


def test_written_defaults_are_the_defaults() -> None:
    """A file that spells out every default is the same as one that leaves them out."""
    assert config(DEFAULTS_WRITTEN_OUT) == config(MINIMAL)


def test_empty_conditions_and_zero_limits_match_everything() -> None:
    """A rule with nothing but its natural zeros is a rule with defaults."""
    match = "{service: '', call_type: '', tier: 0, model: '', lora: '', priority_level: '', content_type: ''}"
    long = f"{{name: r, priority: 0, match: {match}, backends: [a], max_cost_1m: 0, max_ttft_ms: 0}}"
    assert config(f"{MINIMAL}rules: [{long}]").rules == (Rule("r", backends=("a",)),)


def test_a_section_or_list_without_content_counts_as_left_out() -> None:
    """Commenting out all entries of a list leaves a key without a value."""
    assert config(MINIMAL + "rules:\ndefaults:\nbudgets:\nserver:\n") == config(MINIMAL)


def test_a_key_without_a_value_is_no_default() -> None:
    """A single value that is missing behind its key is a problem."""
    assert refused(with_server("port: ")) == {"server.port": "expected a whole number from 1 to 65535, got nothing"}


@pytest.mark.parametrize(
    ("kind", "probe"), [("vllm", "/health"), ("ollama", "/api/version"), ("gemini", "/v1beta/openai/models")]
)
def test_the_health_probe_follows_from_the_type(kind: str, probe: str) -> None:
    """Without health_endpoint the probe of the engine type is used."""
    text = f"backends:\n- {{name: a, url: 'http://h', type: {kind}, model_name: m}}\n"
    assert config(text).backends[0].health_endpoint == probe


def test_a_time_zone_that_does_not_exist_is_refused_with_the_closest_one() -> None:
    """Files beside the zones are none, nor is a path out of their folder."""
    expected = "expected an IANA time zone like UTC or Europe/Berlin"
    assert refused(with_server("timezone: europe/berlin")) == {
        "server.timezone": f"{expected}, got 'europe/berlin'; did you mean 'Europe/Berlin'?"
    }
    for name in ("zone.tab", "/etc/passwd", "../zoneinfo/UTC"):
        assert refused(with_server(f"timezone: {name}"))["server.timezone"].startswith(expected)


SERVER_BOUNDS = [
    ("port", ["1", "65535"], ["0", "65536", "-1", "'8050'", "8050.0", "true", "[1]"]),
    ("health_check_interval", ["1ms", "0.001", "365h", "31536000"], ["0", "0s", "-1", "0.0009", "31536001", "'10'"]),
    ("default_timeout", ["30s"], [".nan", ".inf", "-.inf", "true", "10 s", "{}"]),
    ("message_timeout", ["1h", "3600"], ["3601"]),
    ("max_body_bytes", ["1", "1k", "1GiB"], ["0", "-1", "1.5", "1073741825", "'100'", "true"]),
    ("max_connections", ["1", "1000000"], ["0", "1000001"]),
    ("queue_aware_routing", ["true", "false"], ["yes", "1", "'true'"]),
    ("admin_host", ["localhost", "'::1'", "0.0.0.0"], ["''", "'[::1]'", "999.1.1.1", "'a b'", "1"]),
    ("envoy_dir", ["x", "/x"], ["''", "1", '"a\\nb"']),
    ("data_dir", ["x", "/x"], ["''", "1", '"a\\nb"']),
    ("kv_pinning", ["{max_queue_ratio: 0.1}"], ["{max_queue_ratio: 0}", "{max_queue_ratio: .inf}", "{ttl: 0}"]),
    (
        "timezone",
        ["UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"],
        ["''", "Mars", "Europe", "+01:00", "1", "[UTC]"],
    ),
    ("usage", ["exact", "estimate"], ["''", "exactly", "true", "1"]),
    ("sessions", ["{max_sessions: 1}"], ["{max_sessions: 0}", "{max_context_tokens: 0}", "[]", "1"]),
]


@pytest.mark.parametrize(("key", "good"), [(key, value) for key, good, _ in SERVER_BOUNDS for value in good])
def test_a_server_setting_within_its_bounds_is_accepted(key: str, good: str) -> None:
    """The last values inside each bound."""
    config(with_server(f"{key}: {good}"))


@pytest.mark.parametrize(("key", "bad"), [(key, value) for key, _, bad in SERVER_BOUNDS for value in bad])
def test_a_server_setting_out_of_bounds_or_of_another_type_is_refused(key: str, bad: str) -> None:
    """The first values outside each bound, not finite numbers, flags as numbers and text as numbers."""
    (path,) = refused(with_server(f"{key}: {bad}"))
    assert path.startswith(f"server.{key}")


BACKEND_BOUNDS = [
    ("max_concurrent", ["1"], ["0", "-1", "1.0"]),
    ("cost_input_1m", ["0", "0.01", "1000000"], ["-0.01", "1000000.5", ".nan", "'1'"]),
    ("cost_cached_input_1m", ["0", "0.01", "1000000"], ["-0.01", "1000000.5", ".nan", "'1'"]),
    ("aliases", ["[]", "['a b', '~']"], ["['']", "[' a']", "['ä']", "[1]", "[x, x]", "x", '["a\\tb"]']),
    ("lora_adapters", [f"[{'x' * 256}]"], [f"[{'x' * 257}]"]),
    ("capabilities", ["[json_output]"], ["[json output]", "['']"]),
    ("health_endpoint", ["/", "'/a?b=c'"], ["health", "''", "'/a b'", "'/a#b'"]),
    (
        "circuit_breaker",
        ["{error_threshold: 1}", "{window_seconds: 1ms}"],
        ["{error_threshold: 0}", "{window_seconds: 0}"],
    ),
    ("api_key", ["sk-1"], ["''", "'a b'", '"a\\n"', "1234", "[sk]", "'${KEY}'", "env:UNSET", "'env:'", "env:A-B"]),
]


@pytest.mark.parametrize(("key", "good"), [(key, value) for key, good, _ in BACKEND_BOUNDS for value in good])
def test_a_backend_setting_within_its_bounds_is_accepted(key: str, good: str) -> None:
    """The last values inside each bound."""
    config(with_backend(f"{key}: {good}"))


@pytest.mark.parametrize(("key", "bad"), [(key, value) for key, _, bad in BACKEND_BOUNDS for value in bad])
def test_a_backend_setting_out_of_bounds_or_of_another_type_is_refused(key: str, bad: str) -> None:
    """The first values outside each bound."""
    (path,) = refused(with_backend(f"{key}: {bad}"))
    assert path.startswith(f"backends[0].{key}")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 63, "0"])
def test_a_backend_name_is_made_of_letters_digits_and_three_signs(name: str) -> None:
    """It becomes part of a cluster's name."""
    assert config(MINIMAL.replace("name: a", f"name: '{name}'")).backends[0].name == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "ä", "x" * 64])
def test_other_backend_names_are_refused(name: str) -> None:
    """Empty, too long, a sign in front or any other character."""
    assert list(refused(MINIMAL.replace("name: a", f"name: '{name}'"))) == ["backends[0].name"]


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("rules: [{name: '', backends: [a]}]", "rules[0].name"),
        (f"rules: [{{name: {'x' * 129}, backends: [a]}}]", "rules[0].name"),
        ('rules: [{name: "a\\r\\nb", backends: [a]}]', "rules[0].name"),
        ("rules: [{name: r}]", "rules[0].backends"),
        ("rules: [{name: r, backends: }]", "rules[0].backends"),
        ("rules: [{name: r, backends: []}]", "rules[0].backends"),
        ("rules: [{name: r, backends: [a, a]}]", "rules[0].backends[1]"),
        ("rules: [{name: r, backends: [a], priority: 1.5}]", "rules[0].priority"),
        ("rules: [{name: r, backends: [a], max_ttft_ms: -1}]", "rules[0].max_ttft_ms"),
        ("rules: [{name: r, backends: [a], max_cost_1m: -1}]", "rules[0].max_cost_1m"),
        ("rules: [{name: r, backends: [a], match: {tier: -1}}]", "rules[0].match.tier"),
        ("rules: [{name: r, backends: [a], match: {content_type: audio}}]", "rules[0].match.content_type"),
        ("rules: {name: r, backends: [a]}", "rules"),
        ("rules: [r]", "rules[0]"),
        ("budgets: {s: {daily_limit_usd: 0}}", "budgets.s.daily_limit_usd"),
        ("budgets: {s: {daily_limit_usd: '10'}}", "budgets.s.daily_limit_usd"),
        ("budgets: {s: {}}", "budgets.s.daily_limit_usd"),
        ("budgets: {s: {daily_limit_usd: 1, action: drop}}", "budgets.s.action"),
        ("budgets: {s: {daily_limit_usd: 1, action: downgrade}}", "budgets.s.downgrade_target"),
        ("budgets: {s: {daily_limit_usd: 1, downgrade_target: a}}", "budgets.s.downgrade_target"),
        ("budgets: {'ä': {daily_limit_usd: 1}}", "budgets.…"),
        ("budgets: [s]", "budgets"),
        ("rate_limits: {s: {requests_per_second: 0, burst_size: 1}}", "rate_limits.s.requests_per_second"),
        ("rate_limits: {s: {requests_per_second: 1, burst_size: 0}}", "rate_limits.s.burst_size"),
        ("rate_limits: {s: {requests_per_second: 1, burst_size: 1.5}}", "rate_limits.s.burst_size"),
        ("rate_limits: {s: {burst_size: 1}}", "rate_limits.s.requests_per_second"),
        ("rate_limits: {s: {requests_per_second: 1}}", "rate_limits.s.burst_size"),
        ("quality_gate: {enabled: true}", "quality_gate.fallback_backend"),
        ("quality_gate: {mode: serial}", "quality_gate.mode"),
        ("quality_gate: {sample_rate: -0.1}", "quality_gate.sample_rate"),
        ("quality_gate: {sample_rate: 1.1}", "quality_gate.sample_rate"),
        ("quality_gate: {checks: {min_length: -1}}", "quality_gate.checks.min_length"),
        ("quality_gate: {streaming: buffer}", "quality_gate.streaming"),
        ("quality_gate: {streaming: }", "quality_gate.streaming"),
        ("quality_gate: {on_exhausted: fail}", "quality_gate.on_exhausted"),
        ("quality_gate: {schema_timeout: 10.001}", "quality_gate.schema_timeout"),
        ("quality_gate: {schema_timeout: 0}", "quality_gate.schema_timeout"),
        ("quality_gate: {dpo_export: {max_file_size_mb: 0}}", "quality_gate.dpo_export.max_file_size_mb"),
        ("quality_gate: {dpo_export: {max_files: 0}}", "quality_gate.dpo_export.max_files"),
        ("quality_gate: {dpo_export: {max_files: 10001}}", "quality_gate.dpo_export.max_files"),
        ("quality_gate: {dpo_export: {redact: 1}}", "quality_gate.dpo_export.redact"),
        ("ab_tests: [{name: t, match: {}, variant_a: a, variant_b: a, split_pct: 100.5}]", "ab_tests[0].split_pct"),
        ("ab_tests: [{name: t, match: {}, variant_a: a, variant_b: a, split_pct: -1}]", "ab_tests[0].split_pct"),
        ("ab_tests: [{name: t, variant_a: a, variant_b: a, split_pct: 1}]", "ab_tests[0].match"),
        ("defaults: {fallback_chain: []}", "defaults.fallback_chain"),
        ("defaults: {fallback_chain: [a, a]}", "defaults.fallback_chain[1]"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(section: str, path: str) -> None:
    """One problem, at the key that is wrong."""
    assert list(refused(f"{MINIMAL}{section}\n")) == [path]


@pytest.mark.parametrize(
    "section",
    [
        f"rules: [{{name: {'x' * 128}, backends: [a], priority: -5, match: {{content_type: '', service: '*'}}}}]",
        "rules: [{name: r, backends: [a]}]\ndefaults: {fallback_chain: []}",
        "quality_gate: {sample_rate: 0}",
        "quality_gate: {sample_rate: 1, fallback_backend: ''}",
        "quality_gate: {streaming: skip, schema_timeout: 10s, dpo_export: {max_files: 1}}",
        "quality_gate: {streaming: hold, schema_timeout: 1ms, dpo_export: {max_files: 10000}}",
        "ab_tests: [{name: t, match: {}, variant_a: a, variant_b: a, split_pct: 0}]",
        "ab_tests: [{name: t, match: {}, variant_a: a, variant_b: a, split_pct: 100}]",
    ],
)
def test_a_policy_at_its_bounds_is_accepted(section: str) -> None:
    """The last values inside each bound."""
    config(f"{MINIMAL}{section}\n")


@pytest.mark.parametrize("text", ["backends: []\n", "backends:\n", "server: {}\n"])
def test_at_least_one_backend_is_needed(text: str) -> None:
    """A router without a backend has nothing to do."""
    assert list(refused(text)) == ["backends"]
