"""One server for each module; tests keep apart by the prefix of their keys."""

from collections.abc import Iterator

import pytest

from tests.contract.kinds import KEY, Kind, RedisKind, memory
from tests.fakes.valkey_server import ValkeyServer, valkey_server


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A running server."""
    with valkey_server() as running:
        yield running


@pytest.fixture(params=["memory", "redis", "redis-sealed"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each implementation of the port."""
    if request.param == "memory":
        return memory
    running = request.getfixturevalue("server")
    return RedisKind(running, KEY if request.param == "redis-sealed" else None)
