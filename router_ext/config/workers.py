"""Several processes that answer Envoy, each at an address of its own: where each listens, and what they need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from router_ext.config.document import Mapping, Scalar
from router_ext.config.reading import Reading
from router_ext.config.section import Values, below
from router_ext.config.sections import (
    SOCKET_PATH_BYTES,
    Address,
    Server,
    Sessions,
    SharedStateKind,
    StoreKind,
    TcpAddress,
    UnixAddress,
)

MAX_WORKERS: Final = 64

_LAST_PORT: Final = 65535


def worker_address(server: Server, worker: int) -> Address:
    """Where Envoy finds worker ``worker`` (0..``server.workers``-1): the configured address when it is the only one,
    else ``P-2.sock`` for worker 2 of ``P.sock``, or the port ``worker`` above the configured one.
    """
    address = server.processor_address
    if server.workers == 1:
        return address
    match address:
        case UnixAddress(path):
            return UnixAddress(_numbered(path, worker))
        case TcpAddress(host, port):
            return TcpAddress(host, port + worker)


def id_prefix(worker: int) -> str:
    """What the decision ids of one of several workers begin with: ``w3-`` for worker 3. Envoy finds by it the worker
    that an access log entry is for.
    """
    return f"w{worker}-"


def worker_ports(address: TcpAddress, workers: int) -> range:
    """The ports of the workers in their order, without those above 65535."""
    return range(address.port, min(address.port + workers, _LAST_PORT + 1))


def check_workers(values: Values, mapping: Mapping, reading: Reading) -> None:
    """Records a problem for all that more than one worker lacks: what they share, and an address for the last one.
    ``values`` and ``mapping`` are those of ``server``.
    """
    workers = values.get("workers")
    if not isinstance(workers, int) or workers == 1:
        return
    for need in _unmet(values):
        reading.problem(mapping.entries["workers"], f"more than one worker needs {need}")
    address = mapping.entries.get("processor_address") or Scalar(below(mapping, "processor_address"), mapping.line, "")
    for fault in _without_room(values.get("processor_address"), workers):
        reading.problem(address, fault)


def _unmet(values: Values) -> Iterator[str]:
    if values.get("shared_state") is SharedStateKind.NONE:
        yield "server.shared_state: redis, by which they tell each other of pins, circuit breakers and spending"
    sessions = values.get("sessions")
    if isinstance(sessions, Sessions) and sessions.enabled and sessions.store is StoreKind.MEMORY:
        yield "server.sessions.store: redis while sessions are enabled: a store in memory belongs to one process"


def _without_room(address: object, workers: int) -> Iterator[str]:
    """Why the last worker has no address. A socket that is too long without a number is a problem already."""
    last = workers - 1
    match address:
        case TcpAddress(_, port) if port + last > _LAST_PORT:
            yield f"{workers} workers need as many ports, up to {_LAST_PORT}: use a port up to {_LAST_PORT - last}"
        case UnixAddress(path) if _bytes(path) <= SOCKET_PATH_BYTES < _bytes(_numbered(path, last)):
            name = _numbered(path, last).name
            yield f"the absolute path of the last worker's socket, {name}, is longer than {SOCKET_PATH_BYTES} bytes"


def _numbered(path: Path, worker: int) -> Path:
    return path.parent / f"{path.stem}-{worker}{path.suffix}"


def _bytes(path: Path) -> int:
    return len(bytes(path))
