"""What the rendered files hold, and that Envoy accepts them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from router_ext.config.sections import RouterConfig, Server, TcpAddress
from router_ext.envoygen import (
    CaBundleNotFoundError,
    EnvoyNotFoundError,
    find_envoy,
    render_clusters,
    write_clusters,
    write_envoy_files,
)
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.secret import Secret
from tests.envoy.envoygen.stand import config_for, server_for
from tests.envoy.rig import EnvoyProcess, short_directory, wait_until

ENGINE = Backend("engine", Endpoint("http", "127.0.0.1", 9001), BackendType.VLLM, "m")
NAMED = Backend("named", Endpoint("http", "localhost", 9002), BackendType.LLAMACPP, "m")
SIX = Backend("six", Endpoint("http", "::1", 9003), BackendType.SGLANG, "m", max_concurrent=1_000_000)
CLOUD = Backend(
    "cloud", Endpoint("https", "api.example.com", 443, "/v1"), BackendType.OPENAI, "m", api_key=Secret("sk-canary-1")
)
TLS_IP = Backend("tls-ip", Endpoint("https", "127.0.0.1", 9443), BackendType.VLLM, "m")
MANY = tuple(replace(ENGINE, name=f"engine-{n}") for n in range(60))


def _unix(directory: Path) -> Server:
    return server_for(directory)


def _tcp(directory: Path) -> Server:
    return replace(server_for(directory), processor_address=TcpAddress("127.0.0.1", 9100))


def _named_tcp(directory: Path) -> Server:
    return replace(server_for(directory), processor_address=TcpAddress("localhost", 9100))


def _cluster(config: RouterConfig, name: str) -> dict[str, object]:
    found: dict[str, object] = next(c for c in render_clusters(config)["resources"] if c["name"] == name)
    return found


@pytest.mark.parametrize("server", [_unix, _tcp, _named_tcp])
def test_envoy_validates_the_bootstrap_for_every_kind_of_processor_address(server: object, tmp_path: Path) -> None:
    """``envoy --mode validate`` accepts the bootstrap whether the processor is on a socket, an address or a name."""
    assert callable(server)
    write_envoy_files(config_for(server(tmp_path), ENGINE, CLOUD), tmp_path)
    command = [str(find_envoy()), "--mode", "validate", "-c", str(tmp_path / "bootstrap.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "backends",
    [(), (ENGINE,), (CLOUD,), (ENGINE, NAMED, SIX, CLOUD, TLS_IP), MANY],
    ids=["none", "one", "keyed only", "mixed", "sixty"],
)
def test_a_running_envoy_takes_every_cluster_without_a_complaint(backends: tuple[Backend, ...], tmp_path: Path) -> None:
    """``--mode validate`` does not read the cluster file: a running Envoy does, and knows every field of it."""
    with short_directory() as directory:
        server = server_for(directory)
        write_envoy_files(config_for(server, *backends), directory)
        with EnvoyProcess(directory / "bootstrap.yaml", server.envoy_admin_port, tmp_path) as envoy:
            wait_until(lambda: envoy.stat("cluster_manager.cds.update_success") == 1, "clusters loaded")
            clusters = {line.split("::")[0] for line in envoy.admin("/clusters").splitlines()}
    assert clusters == {"router-ext", "fail-open"} | {backend.cluster for backend in backends}
    complaints = [line for line in envoy.log_path.read_text().splitlines() if "[warning][config]" in line]
    assert complaints == []


def test_no_file_holds_an_api_key(tmp_path: Path) -> None:
    """Keys are set by router_ext in request headers and never reach the disk."""
    write_envoy_files(config_for(server_for(tmp_path), ENGINE, CLOUD), tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["bootstrap.yaml", "clusters.yaml"]
    assert not any("sk-canary-1" in (tmp_path / name).read_text() for name in files)


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """A fresh directory gets mode 0700 and the files 0600."""
    directory = tmp_path / "new"
    write_envoy_files(config_for(server_for(directory), ENGINE), directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "clusters.yaml").stat().st_mode & 0o777 == 0o600


def test_an_unchanged_cluster_file_is_left_alone(tmp_path: Path) -> None:
    """Only a change renames a new file into place, since each rename makes Envoy load it."""
    config = config_for(server_for(tmp_path), ENGINE)
    assert write_clusters(config, tmp_path) is True
    before = (tmp_path / "clusters.yaml").stat().st_ino
    assert write_clusters(config, tmp_path) is False
    assert (tmp_path / "clusters.yaml").stat().st_ino == before
    assert write_clusters(config_for(config.server, ENGINE, NAMED), tmp_path) is True
    assert [path.name for path in tmp_path.iterdir()] == ["clusters.yaml"]


def test_the_bootstrap_does_not_depend_on_the_backends(tmp_path: Path) -> None:
    """A change of backends needs no restart of Envoy."""
    server = server_for(tmp_path)
    write_envoy_files(config_for(server, ENGINE), tmp_path)
    before = (tmp_path / "bootstrap.yaml").read_text()
    write_envoy_files(config_for(server, NAMED, CLOUD), tmp_path)
    assert (tmp_path / "bootstrap.yaml").read_text() == before
    assert yaml.safe_load(before)["admin"]["address"]["socket_address"]["address"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("backend", "discovery"), [(ENGINE, "STATIC"), (SIX, "STATIC"), (NAMED, "STRICT_DNS"), (CLOUD, "LOGICAL_DNS")]
)
def test_discovery_follows_the_kind_of_host(backend: Backend, discovery: str, tmp_path: Path) -> None:
    """Addresses are static, names are looked up, and providers' names keep the connections to earlier addresses."""
    assert _cluster(config_for(server_for(tmp_path), backend), backend.cluster)["type"] == discovery


def test_https_without_trusted_certificates_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``SSL_CERT_FILE`` that names no file is reported, not silently replaced by the system's bundle."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    with pytest.raises(CaBundleNotFoundError, match=r"absent\.pem"):
        render_clusters(config_for(server_for(tmp_path), CLOUD))


def test_a_missing_envoy_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a command the error says how to get one."""
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EnvoyNotFoundError, match="pip install"):
        find_envoy()


def test_clusters_come_and_go_while_envoy_runs(tmp_path: Path) -> None:
    """A renamed cluster file is taken up without a restart."""
    with short_directory() as directory:
        server = server_for(directory)
        write_envoy_files(config_for(server, ENGINE), directory)
        with EnvoyProcess(directory / "bootstrap.yaml", server.envoy_admin_port, tmp_path) as envoy:
            write_clusters(config_for(server, NAMED), directory)
            wait_until(lambda: "backend-named::" in envoy.admin("/clusters"), "cluster added")
            wait_until(lambda: "backend-engine::" not in envoy.admin("/clusters"), "cluster removed")
