"""One server for each module of this folder; a test fails when the gRPC library had to report an error of ours."""

import logging
from collections.abc import Iterator

import pytest

from tests.fakes.wire_stand import Stand, tcp_stand, unix_stand


@pytest.fixture(scope="module")
def shared_stand() -> Iterator[Stand]:
    """A running server on a Unix socket."""
    with unix_stand() as stand:
        yield stand


@pytest.fixture(scope="module")
def shared_tcp_stand() -> Iterator[Stand]:
    """A running server on TCP."""
    with tcp_stand() as stand:
        yield stand


@pytest.fixture
def stand(shared_stand: Stand) -> Iterator[Stand]:
    """The module's server with nothing open and nothing told yet; it asks no backend that the test did not mean."""
    shared_stand.forget()
    yield shared_stand
    assert not shared_stand.dispatcher.unexpected


@pytest.fixture
def stand_on_tcp(shared_tcp_stand: Stand) -> Stand:
    """The module's TCP server with nothing open and nothing told yet."""
    shared_tcp_stand.forget()
    return shared_tcp_stand


@pytest.fixture(autouse=True)
def _no_error_escapes(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    escaped = [
        record for record in caplog.records if record.name.startswith("grpc") and record.levelno >= logging.ERROR
    ]
    assert not escaped, [record.getMessage() for record in escaped]
