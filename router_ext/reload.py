"""Hot reload: the whole new file, or the last good one."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from router_ext.config.loader import LoadedConfig, parse
from router_ext.config.problem import ConfigError
from router_ext.config.sections import RouterConfig, Sessions
from router_ext.config.watcher import Change
from router_ext.ports import Telemetry

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


class Reloader:
    """Takes over each valid change of the file; a change that does not load is reported and nothing else happens.

    ``take_over`` raises OSError or RuntimeError, before it has changed anything, when Envoy's files cannot be written.
    ``workers`` is as in ``config.loader.load``.
    """

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        take_over: Callable[[LoadedConfig], None],
        workers: int | None = None,
    ) -> None:
        self._path = path
        self._environ = environ
        self._telemetry = telemetry
        self._take_over = take_over
        self._workers = workers

    async def run(self, changes: AsyncIterator[Change]) -> None:
        """Handles every change, for ever."""
        async for change in changes:
            self.handle(change)

    def handle(self, change: Change) -> None:
        """One change: content of the file, or why it cannot be read."""
        try:
            if isinstance(change, ConfigError):
                raise change
            loaded = parse(change, str(self._path), self._path.parent, self._environ, self._workers)
            self._take_over(loaded)
        except (ConfigError, OSError, RuntimeError) as error:
            self._telemetry.reload_refused(str(error))
