"""The running configuration as the API shows it. No secret is in any of it."""

from datetime import UTC, datetime
from typing import Any

from router_ext.admin.shapes.backends import BackendConfig, BreakerShown, Origin
from router_ext.admin.shapes.budgets import BudgetConfig
from router_ext.admin.shapes.config import ConfigVersion
from router_ext.admin.shapes.rules import MatchShown, RuleShown
from router_ext.config.changes import Specs
from router_ext.config.masked import MASK, masked_path
from router_ext.config.sections import Budget
from router_ext.control import Running
from router_ext.model.backend import Backend
from router_ext.model.rule import Rule
from router_ext.model.secret import Secret


def backend_config(running: Running, name: str) -> BackendConfig | None:
    """A backend; None when there is none."""
    found = next((backend for backend in running.loaded.config.backends if backend.name == name), None)
    return None if found is None else backend_view(running, found)


def backend_view(running: Running, backend: Backend) -> BackendConfig:
    """A backend of this configuration."""
    breaker = backend.circuit_breaker
    return BackendConfig(
        name=backend.name,
        type=backend.type.value,
        url=str(backend.endpoint),
        model=backend.model_name,
        aliases=sorted(backend.aliases),
        lora_adapters=sorted(backend.lora_adapters),
        capabilities=sorted(backend.capabilities),
        max_concurrent=backend.max_concurrent,
        cost_input_1m=backend.cost_input_1m,
        cost_cached_input_1m=backend.cost_cached_input_1m,
        cost_output_1m=backend.cost_output_1m,
        api_key=_key(backend.api_key),
        health_endpoint=masked_path(backend.health_endpoint),
        circuit_breaker=None
        if breaker is None
        else BreakerShown(error_threshold=breaker.error_threshold, window_seconds=breaker.window_s),
        origin=_origin(running.changes.backends, backend.name),
        drained=backend.name in running.loaded.config.drained,
    )


def rule_config(running: Running, name: str) -> RuleShown | None:
    """A rule; None when there is none."""
    found = next((rule for rule in running.loaded.config.rules if rule.name == name), None)
    return None if found is None else rule_view(running, found)


def rule_view(running: Running, rule: Rule) -> RuleShown:
    """A rule of this configuration."""
    match = rule.match
    return RuleShown(
        name=rule.name,
        priority=rule.priority,
        match=MatchShown(
            service=match.service,
            call_type=match.call_type,
            tier=match.tier,
            model=match.model,
            lora=match.lora,
            priority_level=match.priority_level,
            content_type=match.content_type,
        ),
        backends=list(rule.backends),
        max_cost_1m=rule.max_cost_1m,
        required_capabilities=sorted(rule.required_capabilities),
        max_ttft_ms=rule.max_ttft_ms,
        origin=_origin(running.changes.rules, rule.name),
    )


def budget_config(running: Running, service: str) -> BudgetConfig | None:
    """A budget; None when the service has none of its own."""
    found = next((budget for budget in running.loaded.config.budgets if budget.service == service), None)
    return None if found is None else _budget_view(running, found)


def _budget_view(running: Running, budget: Budget) -> BudgetConfig:
    return BudgetConfig(
        service=budget.service,
        daily_limit_usd=budget.daily_limit_usd,
        action=budget.action,
        downgrade_target=budget.downgrade_target or None,
        usage=None if budget.usage is None else budget.usage.value,
        origin=_origin(running.changes.budgets, budget.service),
    )


def config_version(running: Running) -> ConfigVersion:
    """Which configuration it is."""
    config = running.loaded.config
    return ConfigVersion(
        digest=running.loaded.digest,
        loaded_at=utc(running.loaded_at),
        backends=[backend.name for backend in config.backends],
        rules=[rule.name for rule in config.rules],
    )


def utc(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def masked_specs(specs: Specs) -> dict[str, dict[str, Any] | None]:
    """Changes as they were made. They hold no key but the name of its variable, unless somebody wrote the file."""
    return {name: None if spec is None else _masked(dict(spec)) for name, spec in specs.items()}


def _masked(spec: dict[str, Any]) -> dict[str, Any]:
    key, probe = spec.get("api_key"), spec.get("health_endpoint")
    shown = spec if key is None or str(key).startswith("env:") else {**spec, "api_key": MASK}
    return {**shown, "health_endpoint": masked_path(probe)} if isinstance(probe, str) else shown


def _key(secret: Secret | None) -> str | None:
    """Where a key comes from, never the key."""
    if secret is None:
        return None
    return secret.source if secret.source.startswith("env:") else MASK


def _origin(specs: Specs, name: str) -> Origin:
    return "api" if specs.get(name) is not None else "file"
