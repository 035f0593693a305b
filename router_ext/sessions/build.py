"""The session store that a configuration names."""

from collections.abc import Callable

from router_ext.config.sections import Sessions, StoreKind
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore
from router_ext.sessions.redis import RedisStore


def build_store(sessions: Sessions, evicted: Callable[[str], None]) -> MemoryStore | RedisStore:
    """The store, which connects to nothing before it is used. ``evicted`` is told why a session was given up."""
    limits = StoreLimits(sessions.ttl_s, sessions.max_sessions, sessions.max_bytes)
    if sessions.store is StoreKind.REDIS and sessions.redis_url is not None:
        return RedisStore(
            sessions.redis_url, limits, evicted, key=sessions.encryption_key, timeout_s=sessions.store_timeout_s
        )
    return MemoryStore(limits, evicted)
