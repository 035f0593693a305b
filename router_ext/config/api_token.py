"""The token of the environment that opens the router's own interfaces: the admin API and the decision service."""

import hmac
import re
from collections.abc import Mapping
from typing import Final

from router_ext.config.problem import ConfigError, Problem
from router_ext.model.secret import Secret

TOKEN_VARIABLE: Final = "ROUTER_API_TOKEN"  # noqa: S105 - the variable's name

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


def token_from(environ: Mapping[str, str]) -> Secret | None:
    """The token, None when the variable is not set or empty. Raises ConfigError for one that no header can carry."""
    value = environ.get(TOKEN_VARIABLE)
    if not value:
        return None
    if not _TOKEN.fullmatch(value):
        message = "must be 1 to 4096 printable ASCII characters without a space or a line end"
        raise ConfigError("environment", [Problem(f"env {TOKEN_VARIABLE}", 0, message)])
    return Secret(value, f"env:{TOKEN_VARIABLE}")


def holds(authorization: str, token: Secret) -> bool:
    """True when ``authorization``, the value of that header, is ``Bearer`` with the token."""
    scheme, _, given = authorization.partition(" ")
    # In constant time, so that the time of a refusal tells nothing of the token but its length.
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.reveal().encode())
