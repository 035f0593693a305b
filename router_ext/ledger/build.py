"""The ledger that a configuration shares with other routers."""

from router_ext.config.sections import Server, SharedStateKind
from router_ext.ledger.redis import LedgerTelemetry, RedisLedger
from router_ext.ledger.sqlite import SqliteLedger


def build_shared_ledger(
    server: Server, ledger: SqliteLedger, telemetry: LedgerTelemetry, *, router: str
) -> RedisLedger | None:
    """The ledgers of all routers, connected to nothing before it runs; None where they are not shared."""
    sessions = server.sessions
    if server.shared_state is SharedStateKind.REDIS and sessions.redis_url is not None:
        return RedisLedger(sessions.redis_url, ledger, telemetry, router=router, timeout_s=sessions.store_timeout_s)
    return None
