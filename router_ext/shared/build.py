"""The way to other routers that a configuration names."""

from router_ext.config.sections import Server, SharedStateKind
from router_ext.ports import ALONE, NoSharedState, Telemetry
from router_ext.shared.bus import RedisBus


def build_bus(server: Server, telemetry: Telemetry, *, sender: str) -> RedisBus | NoSharedState:
    """The bus, which connects to nothing before it runs. ``sender`` is as in ``RedisBus``."""
    sessions = server.sessions
    if server.shared_state is SharedStateKind.REDIS and sessions.redis_url is not None:
        return RedisBus(sessions.redis_url, telemetry, sender=sender, timeout_s=sessions.store_timeout_s)
    return ALONE
