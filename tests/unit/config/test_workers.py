"""Several workers: what they need, where each listens, and the option that stands above the file."""

from pathlib import Path

import pytest

from router_ext.config.loader import load, parse
from router_ext.config.problem import ConfigError
from router_ext.config.sections import Address, RouterConfig, Server, TcpAddress, UnixAddress
from router_ext.config.workers import id_prefix, worker_address
from tests.unit.config.samples import FOLDER, MINIMAL, by_path, config, refusal, refused, with_server

WORKERS = "server.workers"
ADDRESS = "server.processor_address"
OPTION = "option --workers"
SHARED = "shared_state: redis"
URL = "redis_url: 'redis://h'"
NEEDS_SHARED_STATE = (
    "more than one worker needs server.shared_state: redis, "
    "by which they tell each other of pins, circuit breakers and spending"
)
NEEDS_STORE = (
    "more than one worker needs server.sessions.store: redis while sessions are enabled: "
    "a store in memory belongs to one process"
)


def ready_for(workers: object, settings: str = "port: 8050") -> str:
    """A configuration with so many workers, all that they share, and more settings."""
    return with_server(f"workers: {workers}, {SHARED}, sessions: {{{URL}}}, {settings}")


def with_option(text: str, workers: int) -> RouterConfig:
    """The sections of ``text`` under ``--workers``."""
    return parse(text, "router.yaml", FOLDER, {}, workers).config


def refused_option(text: str, workers: int) -> dict[str, str]:
    """Messages by path about ``text`` under ``--workers``, which must be refused."""
    with pytest.raises(ConfigError) as error:
        with_option(text, workers)
    return by_path(error.value.problems)


def socket_of(server: Server, worker: int) -> Path:
    """The path of a worker's socket."""
    address = worker_address(server, worker)
    assert isinstance(address, UnixAddress)
    return address.path


def test_there_is_one_worker_by_default() -> None:
    """It needs nothing that it would share."""
    assert config(MINIMAL).server.workers == 1


@pytest.mark.parametrize("workers", [1, 2, 64])
def test_from_1_to_64_workers(workers: int) -> None:
    """Both bounds are included."""
    assert config(ready_for(workers)).server.workers == workers


@pytest.mark.parametrize("workers", ["0", "65", "-1", "1.5", "two", "true", "''"])
def test_other_numbers_of_workers_are_refused(workers: str) -> None:
    """One problem: what so many workers would need is not asked for."""
    (message,) = refused(with_server(f"workers: {workers}, processor_address: '127.0.0.1:65535'")).values()
    assert message.startswith("expected a whole number from 1 to 64")


def test_several_workers_need_shared_state() -> None:
    """Else each would have pins and circuit breakers of its own; one worker does not."""
    assert refused(with_server("workers: 2")) == {WORKERS: NEEDS_SHARED_STATE}
    assert config(with_server("workers: 1")).server.workers == 1


@pytest.mark.parametrize("sessions", ["", "enabled: false, ", "store: memory, ", "store: redis, enabled: true, "])
def test_a_store_in_memory_that_nobody_uses_or_one_in_redis_is_right_for_several_workers(sessions: str) -> None:
    """Only enabled sessions have a store."""
    assert config(with_server(f"workers: 2, {SHARED}, sessions: {{{sessions}{URL}}}")).server.workers == 2


@pytest.mark.parametrize("store", ["", "store: memory, "])
def test_sessions_of_several_workers_need_a_store_in_redis(store: str) -> None:
    """The next turn of a session may reach another worker; with one worker it cannot."""
    sessions = f"{SHARED}, sessions: {{enabled: true, {store}{URL}}}"
    assert refused(with_server(f"workers: 2, {sessions}")) == {WORKERS: NEEDS_STORE}
    assert config(with_server(f"workers: 1, {sessions}")).server.sessions.enabled


def test_all_that_is_missing_is_said_at_once() -> None:
    """Two problems at one place."""
    assert refusal(with_server("workers: 2, sessions: {enabled: true}")).split("\n") == [
        f"router.yaml:1: server.workers: {NEEDS_SHARED_STATE}",
        f"router.yaml:1: server.workers: {NEEDS_STORE}",
    ]


def test_what_is_wrong_by_itself_is_not_said_to_be_missing() -> None:
    """A word that does not exist is one problem."""
    assert list(refused(with_server("workers: 2, shared_state: reddis"))) == ["server.shared_state"]
    assert list(refused(with_server(f"workers: 2, {SHARED}, sessions: {{store: reddis}}"))) == ["server.sessions.store"]


@pytest.mark.parametrize(
    ("workers", "worker", "address"),
    [(1, 0, "run/p.sock"), (2, 0, "run/p-0.sock"), (2, 1, "run/p-1.sock"), (64, 63, "run/p-63.sock")],
)
def test_a_worker_has_its_number_in_the_name_of_its_socket(workers: int, worker: int, address: str) -> None:
    """The only worker has the configured name."""
    server = config(ready_for(workers, "processor_address: 'unix:run/p.sock'")).server
    assert worker_address(server, worker) == UnixAddress(FOLDER / address)


@pytest.mark.parametrize(
    ("path", "numbered"),
    [("/run/p", "/run/p-1"), ("/run/a.b.sock", "/run/a.b-1.sock"), ("/run/.p", "/run/.p-1"), ("/", "/-1")],
)
def test_the_number_stands_before_the_last_suffix(path: str, numbered: str) -> None:
    """Where there is none it stands at the end."""
    server = Server(processor_address=UnixAddress(Path(path)), workers=2)
    assert worker_address(server, 1) == UnixAddress(Path(numbered))


@pytest.mark.parametrize(("workers", "worker", "port"), [(1, 0, 9100), (2, 0, 9100), (2, 1, 9101), (64, 63, 9163)])
def test_a_worker_has_the_port_after_the_one_before(workers: int, worker: int, port: int) -> None:
    """The first has the configured one."""
    server = config(ready_for(workers, "processor_address: '127.0.0.1:9100'")).server
    assert worker_address(server, worker) == TcpAddress("127.0.0.1", port)


def test_all_workers_have_addresses_and_id_prefixes_of_their_own() -> None:
    """No prefix begins with another one."""
    for address in (UnixAddress(Path("/run/p.sock")), TcpAddress("h", 9100)):
        server = Server(processor_address=address, workers=64)
        addresses: set[Address] = {worker_address(server, worker) for worker in range(64)}
        assert len(addresses) == 64
    prefixes = [id_prefix(worker) for worker in range(64)]
    assert (prefixes[3], prefixes[63]) == ("w3-", "w63-")
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and a.startswith(b)]


@pytest.mark.parametrize(("workers", "most"), [(2, 105), (10, 105), (11, 104), (64, 104)])
def test_the_last_workers_socket_has_at_most_107_bytes(workers: int, most: int) -> None:
    """Its number takes two or three of them, and the number of the tenth worker is 9."""
    fits, too_long = (f"/{'s' * (length - 6)}.sock" for length in (most, most + 1))
    server = config(ready_for(workers, f"processor_address: 'unix:{fits}'")).server
    assert len(bytes(socket_of(server, workers - 1))) == 107
    message = refused(ready_for(workers, f"processor_address: 'unix:{too_long}'"))[ADDRESS]
    assert message.startswith("the absolute path of the last worker's socket, sss")
    assert message.endswith(f"-{workers - 1}.sock, is longer than 107 bytes")


def test_the_default_socket_of_a_deep_folder_may_be_too_long_too() -> None:
    """The problem stands at the key that mends it. ``/run/processor-1.sock`` has 21 bytes."""
    assert parse(ready_for(2), "router.yaml", Path("/" + "d" * 85), {}).config.server.workers == 2
    with pytest.raises(ConfigError) as error:
        parse(ready_for(2), "router.yaml", Path("/" + "d" * 86), {})
    assert by_path(error.value.problems) == {
        ADDRESS: "the absolute path of the last worker's socket, processor-1.sock, is longer than 107 bytes"
    }


def test_a_socket_that_is_too_long_for_one_worker_is_one_problem() -> None:
    """Its own length is said, not that of the last worker's."""
    message = "the socket's absolute path is longer than 107 bytes"
    assert refused(ready_for(2, f"processor_address: 'unix:/{'s' * 107}'")) == {ADDRESS: message}


def test_the_ports_of_workers_end_at_65535() -> None:
    """All of them are ports."""
    assert config(ready_for(2, "processor_address: 'h:65534'")).server.workers == 2
    assert config(ready_for(64, "processor_address: 'h:65472'")).server.workers == 64
    assert refused(ready_for(2, "processor_address: 'h:65535'")) == {
        ADDRESS: "2 workers need as many ports, up to 65535: use a port up to 65534"
    }
    assert refused(ready_for(64, "processor_address: 'h:65473'")) == {
        ADDRESS: "64 workers need as many ports, up to 65535: use a port up to 65472"
    }


def test_no_worker_has_the_port_of_another_listener() -> None:
    """8050 to 8053 are the defaults of the others."""
    for first in (8046, 8054):
        assert config(ready_for(4, f"processor_address: 'h:{first}'")).server.workers == 4
    assert refused(ready_for(4, "processor_address: 'h:8047'")) == {ADDRESS: "port 8050 of worker 3 is server.port"}
    assert refused(ready_for(4, "processor_address: 'h:8053'")) == {ADDRESS: "the same port as server.envoy_admin_port"}
    assert refusal(ready_for(4, "processor_address: 'h:8049'")).count("of worker") == 3


@pytest.mark.parametrize(
    "text", [ready_for(8), ready_for("many"), f"server: {{{SHARED}, sessions: {{{URL}}}}}\n{MINIMAL}"]
)
def test_the_option_stands_above_the_file(text: str) -> None:
    """Whatever is written there, or nothing."""
    assert with_option(text, 3).server.workers == 3


def test_without_the_option_the_file_counts(tmp_path: Path) -> None:
    """``load`` takes it as ``parse`` does."""
    (tmp_path / "router.yaml").write_text(ready_for(8))
    read = [load(tmp_path / "router.yaml", {}, workers).config.server.workers for workers in (None, 1, 64)]
    assert read == [8, 1, 64]


def test_the_option_is_checked_like_the_setting_and_named_in_the_message() -> None:
    """It has no line in the file, which is not named."""
    assert refused_option(MINIMAL, 2) == {OPTION: NEEDS_SHARED_STATE}
    assert refused_option(ready_for(1), 0) == {OPTION: "expected a whole number from 1 to 64, got 0"}
    assert refused_option(ready_for(1), 65) == {OPTION: "expected a whole number from 1 to 64, got 65"}
    assert list(refused_option(ready_for(1, "processor_address: 'h:65535'"), 2)) == [ADDRESS]
    with pytest.raises(ConfigError) as error:
        with_option(MINIMAL, 2)
    assert str(error.value) == f"option --workers: {NEEDS_SHARED_STATE}"


def test_one_worker_by_the_option_needs_nothing() -> None:
    """What the file says of several is not looked at."""
    assert with_option(with_server("workers: 8"), 1).server.workers == 1


def test_a_section_of_the_wrong_kind_leaves_its_problem() -> None:
    """``server: 5`` is still reported."""
    assert refused_option(f"server: 5\n{MINIMAL}", 2) == {"server": "expected keys with values, got a single value"}
