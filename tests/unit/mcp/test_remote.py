"""The address of a router."""

import pytest

from router_ext.mcp.remote import admin_url


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
    """A slash at the end does not matter."""
    assert str(admin_url(text)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:8052",
        "unix:/x",
        "http://",
        "http://u:pass@h",
        "http://h/api",
        "http://h?a=b",
        "//h",
    ],
)
def test_anything_else_is_refused_without_quoting_it(text: str) -> None:
    """It may hold a credential."""
    with pytest.raises(ValueError, match="--admin: ") as error:
        admin_url(text)
    assert "pass" not in str(error.value)
