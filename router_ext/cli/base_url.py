"""Where an HTTP interface is, as an option of the command line."""

import argparse
from typing import Final

from yarl import URL

ADMIN: Final = "http://127.0.0.1:8052"
"""The router's admin API where the configuration says nothing else."""

_EVERY_INTERFACE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "[::1]"}  # noqa: S104 - what a server may bind


def reachable(host: str) -> str:
    """The host by which a server of this machine is asked that listens on ``host``, be it every interface."""
    return _EVERY_INTERFACE.get(host, host)


def base_url(text: str) -> str:
    """Scheme, host and port, without a slash at the end: paths are put behind it. Raises ArgumentTypeError, which
    quotes nothing: the text may hold a credential.
    """
    try:
        url = URL(text)
        port = url.port
    except ValueError:
        url, port = URL(), None
    more = url.user or url.password or url.query_string or url.fragment or url.path not in ("", "/")
    if url.scheme not in ("http", "https") or not url.host or not port or more or not text.isprintable():
        raise argparse.ArgumentTypeError(f"expected scheme, host and port, like {ADMIN}")
    return str(url.origin())
