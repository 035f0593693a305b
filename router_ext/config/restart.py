"""Settings that only a restart takes over."""

from dataclasses import fields
from typing import Final

from router_ext.config.sections import RouterConfig, Sessions

_LIVE_SESSION_SETTINGS: Final = frozenset({"enabled", "max_context_tokens"})


def restart_only(old: RouterConfig, new: RouterConfig) -> tuple[str, ...]:
    """Settings that differ but are read at start only, as Envoy's listeners, our sockets, the store of sessions, the
    way to other replicas, the number of processes and the files of costs and of preference pairs are. Those without a
    section are of ``server``.
    """
    names = (
        "port",
        "egress_port",
        "admin_host",
        "admin_port",
        "envoy_admin_port",
        "processor_address",
        "envoy_dir",
        "data_dir",
        "max_body_bytes",
        "max_connections",
        "message_timeout_s",
        "stream_idle_timeout_s",
        "shared_state",
        "workers",
    )
    changed = tuple(name for name in names if getattr(old.server, name) != getattr(new.server, name))
    gate = tuple(
        f"quality_gate.{name}"
        for name in ("schema_timeout_s", "dpo_export")
        if getattr(old.quality_gate, name) != getattr(new.quality_gate, name)
    )
    log = () if old.shadow_log_path == new.shadow_log_path else ("shadow_log_path",)
    return changed + _changed_store(old.server.sessions, new.server.sessions) + gate + log


def _changed_store(old: Sessions, new: Sessions) -> tuple[str, ...]:
    names = (field.name for field in fields(Sessions) if field.name not in _LIVE_SESSION_SETTINGS)
    return tuple(f"sessions.{name}" for name in names if getattr(old, name) != getattr(new, name))
