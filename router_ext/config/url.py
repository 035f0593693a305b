"""Addresses: a backend's URL, host names, and where Envoy finds the router."""

import ipaddress
import re
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from router_ext.config.document import Scalar
from router_ext.config.reading import Reading
from router_ext.config.scalars import ScalarReader, UnfitError, text_of
from router_ext.config.sections import SOCKET_PATH_BYTES, Address, TcpAddress, UnixAddress
from router_ext.model.backend import Endpoint

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_URL_CHARS: Final = 2048
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*/?")
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*\.?")
_ALL_NUMBERS: Final = re.compile(r"[0-9.]+")
_HOST_PORT: Final = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*)):([0-9]{1,5})")
_UNIX: Final = "unix:"


def url() -> ScalarReader[Endpoint]:
    """An http or https URL of a host, with no credential, query or fragment. Never quoted: it could hold a key."""
    return ScalarReader("a URL like http://host:8000", lambda scalar: parse_url(text_of(scalar)), private=True)


def parse_url(value: str) -> Endpoint:
    """The endpoint of a URL. Raises UnfitError with a sentence that quotes nothing of it."""
    _refuse_unwanted(value)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise UnfitError("the host or port of the URL is malformed") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise UnfitError("the URL must start with http:// or https://")
    if port is None and parts.netloc.endswith(":"):
        raise UnfitError("the URL has a colon but no port")
    if port == 0:
        raise UnfitError("the port of the URL must be from 1 to 65535")
    path = _path(parts)
    return Endpoint(parts.scheme, _url_host(parts), port or _DEFAULT_PORTS[parts.scheme], path)


def _refuse_unwanted(value: str) -> None:
    if not value:
        raise UnfitError("the URL is empty")
    refuse_braces(value, "the URL")
    if len(value) > _URL_CHARS:
        raise UnfitError(f"the URL is longer than {_URL_CHARS} characters")
    if not value.isascii() or any(char <= " " or char in "\x7f\\" for char in value):
        raise UnfitError("the URL holds a space, a control character, a backslash or a character outside ASCII")
    if "?" in value or "#" in value:
        raise UnfitError("the URL must have no query and no fragment")
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise UnfitError("the URL must hold no user name or password: use api_key")


def refuse_braces(value: str, what: str) -> None:
    """Raises UnfitError when ``value`` holds ``${``, which other tools replace and this one does not."""
    if "${" in value:
        raise UnfitError(f"{what} holds '${{', which is not replaced: write env:NAME as the whole value")


def _url_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if not host:
        raise UnfitError("the URL has no host")
    if not is_host(host) or (":" in host) != parts.netloc.startswith("["):
        raise UnfitError("the host of the URL is malformed")
    return host


def _path(parts: SplitResult) -> str:
    if not _PATH.fullmatch(parts.path) or {".", ".."} & set(parts.path.split("/")):
        raise UnfitError("the path of the URL is malformed")
    return parts.path.rstrip("/")


def is_host(value: str) -> bool:
    """True for a host name, an IPv4 address or an IPv6 address without brackets and zone."""
    if ":" in value or _ALL_NUMBERS.fullmatch(value):
        return "%" not in value and _ip(value) is not None
    return _HOST.fullmatch(value) is not None


def is_loopback(host: str) -> bool:
    """True when only this machine can reach a listener on ``host``."""
    address = _ip(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def host() -> ScalarReader[str]:
    """A host to listen on."""

    def parse(scalar: Scalar) -> str:
        value = text_of(scalar)
        if not is_host(value):
            raise UnfitError
        return value

    return ScalarReader("a host name or an IP address without brackets", parse)


def address() -> ScalarReader[Address]:
    """``unix:PATH`` (relative to the configuration file's folder) or ``HOST:PORT``."""
    return ScalarReader("unix:PATH or HOST:PORT with a port from 1 to 65535", _parse_address, finish=_anchored)


def _parse_address(scalar: Scalar) -> Address:
    value = text_of(scalar)
    path = value.removeprefix(_UNIX)
    if path != value:
        if not path or not path.isprintable():
            raise UnfitError
        return UnixAddress(Path(path))
    found = _HOST_PORT.fullmatch(value)
    if not found or not 1 <= int(found[3]) <= 65535:
        raise UnfitError
    name = found[1] or found[2]
    if not is_host(name) or (":" in name) != bool(found[1]):
        raise UnfitError
    return TcpAddress(name, int(found[3]))


def _anchored(value: Address, scalar: Scalar, reading: Reading) -> Address:
    if isinstance(value, TcpAddress):
        return value
    path = reading.folder / value.path
    if len(bytes(path)) > SOCKET_PATH_BYTES:
        reading.problem(scalar, f"the socket's absolute path is longer than {SOCKET_PATH_BYTES} bytes")
    return UnixAddress(path)
