"""Settings that wait for a restart."""

from pathlib import Path

from router_ext.config.restart import restart_only
from router_ext.config.sections import RouterConfig, Server, Sessions, SharedStateKind, StoreKind
from router_ext.model.secret import Secret


def test_settings_that_need_a_restart_are_named() -> None:
    """Ports and limits are Envoy's listeners and our sockets; intervals are not."""
    old = RouterConfig(server=Server())
    new = RouterConfig(server=Server(port=9000, max_body_bytes=1000, health_check_interval_s=1))
    assert restart_only(old, new) == ("port", "max_body_bytes")
    shared = RouterConfig(server=Server(shared_state=SharedStateKind.REDIS))
    assert restart_only(old, shared) == ("shared_state",)
    assert restart_only(old, RouterConfig(server=Server(workers=2))) == ("workers",)
    assert restart_only(old, RouterConfig(server=Server(data_dir=Path("/var/lib/router")))) == ("data_dir",)


def test_the_store_of_sessions_needs_a_restart() -> None:
    """It is built once, with all that it is told; whether sessions are taken and how long they may get is not its."""
    old = RouterConfig()
    store = Sessions(store=StoreKind.REDIS, redis_url=Secret("redis://h"), encryption_key=Secret("00" * 32))
    limits = Sessions(ttl_s=60.0, max_sessions=1, max_bytes=1, store_timeout_s=0.1)
    live = Sessions(enabled=True, max_context_tokens=1)
    assert [restart_only(old, RouterConfig(server=Server(sessions=new))) for new in (store, limits, live)] == [
        ("sessions.store", "sessions.redis_url", "sessions.encryption_key"),
        ("sessions.ttl_s", "sessions.max_sessions", "sessions.max_bytes", "sessions.store_timeout_s"),
        (),
    ]
