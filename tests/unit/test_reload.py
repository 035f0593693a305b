"""Hot reload: all of the new file, or the last good one."""

from pathlib import Path

import pytest

from router_ext.config.loader import LoadedConfig
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.sections import RouterConfig, Server, Sessions, SharedStateKind, StoreKind
from router_ext.model.secret import Secret
from router_ext.reload import Reloader, restart_only
from tests.fakes.telemetry import RecordingTelemetry

GOOD = b'backends: [{name: a, url: "http://127.0.0.1:1", type: vllm, model_name: m}]'


class Router:
    """Keeps what it was given, unless its disk is full."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.taken: list[LoadedConfig] = []
        self.failure = failure

    def take_over(self, loaded: LoadedConfig) -> None:
        """One configuration."""
        if self.failure is not None:
            raise self.failure
        self.taken.append(loaded)


def reload(change: bytes | ConfigError, router: Router) -> RecordingTelemetry:
    """What a change of the file leads to."""
    telemetry = RecordingTelemetry()
    Reloader(Path("router.yaml"), {}, telemetry, router.take_over).handle(change)
    return telemetry


def test_a_good_file_is_taken_over() -> None:
    """The parsed configuration reaches the router."""
    router = Router()
    assert reload(GOOD, router).reload_problems == []
    assert [loaded.config.backends[0].name for loaded in router.taken] == ["a"]


@pytest.mark.parametrize(
    "change", [b"", b"backends: [", b"[]", b"\xff", ConfigError("router.yaml", [Problem("", 0, "cannot be read")])]
)
def test_a_bad_file_changes_nothing_and_is_reported(change: bytes | ConfigError) -> None:
    """The problem is told; the router keeps what it has."""
    router = Router()
    assert len(reload(change, router).reload_problems) == 1
    assert router.taken == []


def test_the_option_of_the_command_line_stands_above_a_new_file_too() -> None:
    """A reload reads ``server.workers`` as the start did."""
    router, telemetry = Router(), RecordingTelemetry()
    several = GOOD + b"\nserver: {workers: 8}"
    Reloader(Path("router.yaml"), {}, telemetry, router.take_over, workers=1).handle(several)
    assert [loaded.config.server.workers for loaded in router.taken] == [1]
    assert len(reload(several, router).reload_problems) == 1


@pytest.mark.parametrize("failure", [OSError("no space left"), RuntimeError("no CA bundle")])
def test_a_good_file_whose_envoy_files_cannot_be_written_is_refused(failure: Exception) -> None:
    """A full disk is no reason to stop routing."""
    assert reload(GOOD, Router(failure)).reload_problems == [str(failure)]


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
