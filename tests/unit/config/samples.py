"""Configuration texts, and short ways to read them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from router_ext.config.loader import ConfigError, LoadedConfig, parse
from router_ext.config.problem import Problem
from router_ext.config.sections import RouterConfig

FOLDER = Path("/etc/router")

BACKEND = "  - {name: a, url: 'http://127.0.0.1:8000', type: vllm, model_name: m"
MINIMAL = f"backends:\n{BACKEND}}}\n"

FULL = """\
server:
  port: 8150
  egress_port: 8151
  admin_host: 127.0.0.1
  admin_port: 8152
  envoy_admin_port: 8153
  processor_address: "unix:run/p.sock"
  envoy_dir: envoy-files
  data_dir: /var/lib/router
  health_check_interval: 20s
  default_timeout: 2m
  stream_idle_timeout: 1h30m
  message_timeout: 250ms
  max_body_bytes: 16MiB
  max_connections: 5000
  kv_pinning: {enabled: true, ttl: 20m, max_entries: 500, max_queue_ratio: 1.5}
  queue_aware_routing: true
  queue_scrape_interval: 2.5
  timezone: Australia/Adelaide
  usage: exact
  sessions: {enabled: true, store: redis, redis_url: "env:REDIS", encryption_key: "env:SESSION_KEY", ttl: 3h,
    max_sessions: 10, max_bytes: 1GiB, max_context_tokens: 4000, store_timeout: 100ms}
backends:
  - {name: a, url: "http://127.0.0.1:8000", type: vllm, model_name: m, aliases: [fast], lora_adapters: [sql],
     capabilities: [json_output], max_concurrent: 8, cost_input_1m: 0.01, cost_cached_input_1m: 0.005,
     cost_output_1m: 0.02}
  - name: b
    url: https://api.openai.com/v1/
    type: openai
    model_name: gpt
    api_key: "env:OPENAI_KEY"
    cost_input_1m: 2.5
    cost_output_1m: 10
    health_endpoint: /ready
    circuit_breaker: {error_threshold: 3, window_seconds: 20}
rules:
  - {name: r, priority: 100, match: {service: shop, call_type: chat, tier: 2, model: "gpt-*", lora: sql,
     priority_level: high, content_type: text}, backends: [a, b], max_cost_1m: 5, required_capabilities: [json_output],
     max_ttft_ms: 300}
defaults: {fallback_chain: [b, a]}
budgets: {my-service: {daily_limit_usd: 50, action: downgrade, downgrade_target: a, usage: estimate},
  default: {daily_limit_usd: 0.5}}
rate_limits: {my-service: {requests_per_second: 2.5, burst_size: 10}, default: {requests_per_second: 1, burst_size: 1}}
quality_gate: {enabled: true, mode: parallel, fallback_backend: b, sample_rate: 0.5, streaming: observe,
  on_exhausted: error, schema_timeout: 250ms,
  checks: {min_length: 1, min_tokens: 2, valid_json: true, no_refusal: true},
  dpo_export: {enabled: true, output_path: pairs.jsonl, max_file_size_mb: 5, max_files: 3,
    redact: true}}
ab_tests: [{name: t, match: {service: shop}, variant_a: a, variant_b: b, split_pct: 10, active: false, mode: shadow,
  max_inflight: 4, similarity_threshold: 0.5}]
shadow_log_path: shadows.jsonl
"""

FULL_ENVIRON = {
    "OPENAI_KEY": "sk-1",
    "REDIS": "rediss://router:pw@redis.internal:6380/2",
    "SESSION_KEY": "00" * 31 + "ff",
}
"""What the variables of ``FULL`` hold."""

DEFAULTS_WRITTEN_OUT = """\
server:
  port: 8050
  egress_port: 8051
  admin_host: 127.0.0.1
  admin_port: 8052
  envoy_admin_port: 8053
  processor_address: "unix:run/processor.sock"
  envoy_dir: envoy
  data_dir: data
  health_check_interval: 30s
  default_timeout: 120s
  stream_idle_timeout: 300s
  message_timeout: 1s
  max_body_bytes: 33554432
  max_connections: 10000
  kv_pinning: {enabled: false, ttl: 30m, max_entries: 10000, max_queue_ratio: 2.0}
  queue_aware_routing: false
  queue_scrape_interval: 5s
  timezone: UTC
  sessions: {enabled: false, store: memory, ttl: 2h, max_sessions: 1000, max_bytes: 2GiB, max_context_tokens: 500000,
    store_timeout: 500ms}
backends:
  - {name: a, url: "http://127.0.0.1:8000", type: vllm, model_name: m, aliases: [], lora_adapters: [], capabilities: [],
     max_concurrent: 64, health_endpoint: /health}
rules: []
defaults: {fallback_chain: [a]}
budgets: {}
rate_limits: {}
quality_gate: {enabled: false, mode: sequential, fallback_backend: "", sample_rate: 1.0, on_exhausted: return,
  schema_timeout: 1s,
  checks: {min_length: 0, min_tokens: 0, valid_json: false, no_refusal: false},
  dpo_export: {enabled: false, output_path: dpo_training_data.jsonl, max_file_size_mb: 100, max_files: 10,
    redact: false}}
ab_tests: []
"""


def loaded(text: str | bytes, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    """The configuration of ``text`` in the file /etc/router/router.yaml."""
    return parse(text, "router.yaml", FOLDER, environ or {})


def config(text: str, environ: Mapping[str, str] | None = None) -> RouterConfig:
    """The sections of ``text``."""
    return loaded(text, environ).config


def refusal(text: str | bytes, environ: Mapping[str, str] | None = None) -> str:
    """The message about ``text``, which must be refused."""
    with pytest.raises(ConfigError) as error:
        loaded(text, environ)
    return str(error.value)


def refused(text: str | bytes, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Messages by path about ``text``, which must be refused."""
    with pytest.raises(ConfigError) as error:
        loaded(text, environ)
    return by_path(error.value.problems)


def by_path(problems: tuple[Problem, ...]) -> dict[str, str]:
    """Messages by path."""
    return {problem.path: problem.message for problem in problems}


def with_server(setting: str) -> str:
    """The smallest configuration with one setting of ``server``."""
    return f"server: {{{setting}}}\n{MINIMAL}"


def with_backend(settings: str) -> str:
    """The smallest configuration whose backend has more settings."""
    return f"backends:\n{BACKEND}, {settings}}}\n"


def with_url(url: str) -> str:
    """The smallest configuration whose backend listens at ``url``."""
    return f"backends:\n- {{name: a, url: '{url}', type: vllm, model_name: m}}\n"
