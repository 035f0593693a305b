"""Hot reload: the whole new file, or the last good one."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from router_ext.config.loader import LoadedConfig, parse
from router_ext.config.problem import ConfigError
from router_ext.config.sections import RouterConfig
from router_ext.config.watcher import Change
from router_ext.ports import Telemetry


def restart_only(old: RouterConfig, new: RouterConfig) -> tuple[str, ...]:
    """Settings of ``server`` that differ but are read at start only, as Envoy's listeners and our sockets are."""
    names = (
        "port",
        "egress_port",
        "admin_host",
        "admin_port",
        "envoy_admin_port",
        "processor_address",
        "envoy_dir",
        "max_body_bytes",
        "max_connections",
        "message_timeout_s",
        "stream_idle_timeout_s",
    )
    return tuple(name for name in names if getattr(old.server, name) != getattr(new.server, name))


class Reloader:
    """Takes over each valid change of the file; a change that does not load is reported and nothing else happens.

    ``take_over`` raises OSError or RuntimeError, before it has changed anything, when Envoy's files cannot be written.
    """

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        take_over: Callable[[LoadedConfig], None],
    ) -> None:
        self._path = path
        self._environ = environ
        self._telemetry = telemetry
        self._take_over = take_over

    async def run(self, changes: AsyncIterator[Change]) -> None:
        """Handles every change, for ever."""
        async for change in changes:
            self.handle(change)

    def handle(self, change: Change) -> None:
        """One change: content of the file, or why it cannot be read."""
        try:
            if isinstance(change, ConfigError):
                raise change
            loaded = parse(change, str(self._path), self._path.parent, self._environ)
            self._take_over(loaded)
        except (ConfigError, OSError, RuntimeError) as error:
            self._telemetry.reload_refused(str(error))
