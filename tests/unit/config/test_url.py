"""A backend's URL and the addresses of ``server``."""

from pathlib import Path

import pytest

from router_ext.config.sections import TcpAddress, UnixAddress
from router_ext.model.backend import Endpoint
from tests.unit.config.samples import FOLDER, config, refused, with_server, with_url


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://vllm", Endpoint("http", "vllm", 80)),
        ("https://api.openai.com", Endpoint("https", "api.openai.com", 443)),
        ("HTTP://Host:8000", Endpoint("http", "host", 8000)),
        ("http://10.0.0.1:65535/", Endpoint("http", "10.0.0.1", 65535)),
        ("http://[::1]:8000/v1/", Endpoint("http", "::1", 8000, "/v1")),
        ("http://a_b.svc.cluster.local:1/x/y", Endpoint("http", "a_b.svc.cluster.local", 1, "/x/y")),
    ],
)
def test_a_url_gives_scheme_host_port_and_path(url: str, endpoint: Endpoint) -> None:
    """The port follows from the scheme when it is left out, and a trailing slash is dropped."""
    assert config(with_url(url)).backends[0].endpoint == endpoint


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host", "must start with http:// or https://"),
        ("host:8000", "must start with http:// or https://"),
        ("http://", "has no host"),
        ("http:///path", "has no host"),
        ("http://:8000", "has no host"),
        ("http://host:", "has a colon but no port"),
        ("http://host:0", "must be from 1 to 65535"),
        ("http://host:65536", "is malformed"),
        ("http://host:x", "is malformed"),
        ("http://[::1", "is malformed"),
        ("http://[fe80::1%eth0]:80", "is malformed"),
        ("http://300.1.1.1", "is malformed"),
        ("http://-host", "is malformed"),
        ("http://ho$t", "is malformed"),
        ("http://host/a/../b", "path of the URL is malformed"),
        ("http://host//a", "path of the URL is malformed"),
        ("http://host/a b", "a space"),
        ("http://höst", "outside ASCII"),
        ("http://host?", "no query"),
        ("http://host/#x", "no fragment"),
        ("http://${HOST}:8000", "write env:NAME"),
        ("", "is empty"),
    ],
)
def test_other_urls_are_refused(url: str, message: str) -> None:
    """Only a plain http or https address of a host is a backend's URL."""
    problem = refused(with_url(url))["backends[0].url"]
    assert message in problem


def test_a_url_with_a_password_is_refused_without_printing_it() -> None:
    """User name and password never reach a message."""
    problems = refused(with_url("http://bob:hunter2@host:8000"))
    assert problems == {"backends[0].url": "the URL must hold no user name or password: use api_key"}


def test_a_url_with_a_line_end_is_refused() -> None:
    """Python's parser drops line ends silently, which would join two lines to another host."""
    text = MULTILINE_URL
    assert "a control character" in refused(text)["backends[0].url"]


MULTILINE_URL = 'backends:\n- {name: a, url: "http://ho\\nst", type: vllm, model_name: m}\n'


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:p.sock", UnixAddress(FOLDER / "p.sock")),
        ("unix:/run/p.sock", UnixAddress(Path("/run/p.sock"))),
        ("127.0.0.1:8054", TcpAddress("127.0.0.1", 8054)),
        ("router:1", TcpAddress("router", 1)),
        ("[::1]:65535", TcpAddress("::1", 65535)),
    ],
)
def test_the_processor_is_at_a_socket_or_a_port(text: str, address: UnixAddress | TcpAddress) -> None:
    """A relative socket path is below the file's folder."""
    assert config(with_server(f"processor_address: '{text}'")).server.processor_address == address


@pytest.mark.parametrize("text", ["", "unix:", "8054", "host", "host:0", "host:65536", "::1:80", "[host]:80", "a b:80"])
def test_other_processor_addresses_are_refused(text: str) -> None:
    """Without a path, a host or a port in range there is no address."""
    assert "server.processor_address" in refused(with_server(f"processor_address: '{text}'"))


def test_a_socket_path_has_at_most_107_bytes() -> None:
    """Linux's limit holds for the absolute path: 107 bytes pass, 108 do not."""
    config(with_server(f"processor_address: 'unix:/{'s' * 106}'"))
    problems = refused(with_server(f"processor_address: 'unix:/{'s' * 107}'"))
    assert problems == {"server.processor_address": "the socket's absolute path is longer than 107 bytes"}
