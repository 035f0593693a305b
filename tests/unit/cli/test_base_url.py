"""The address of a router, or of Envoy's admin page."""

import argparse

import pytest

from router_ext.cli.base_url import base_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8052", "http://127.0.0.1:8052"),
        ("http://127.0.0.1:8052/", "http://127.0.0.1:8052"),
        ("https://router.example", "https://router.example"),
        ("http://[::1]:8052", "http://[::1]:8052"),
    ],
)
def test_an_address_is_scheme_host_and_port(text: str, url: str) -> None:
    """A slash at the end does not matter: paths are put behind it."""
    assert base_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:8052",
        "unix:/x",
        "ftp://h",
        "http://",
        "http://u:pass@h",
        "http://h/api",
        "http://h?a=b",
        "http://h#a",
        "http://h:x",
        "http://h:0",
        "http://h\n",
        "//h",
    ],
)
def test_anything_else_is_refused_without_quoting_it(text: str) -> None:
    """It may hold a credential."""
    with pytest.raises(argparse.ArgumentTypeError, match="expected scheme, host and port") as error:
        base_url(text)
    assert "pass" not in str(error.value)
