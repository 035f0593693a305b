"""Looks up where the URL of a backend leads, before the API adds it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from router_ext.admin.addresses import PRIVATE, is_metadata_name, objection
from router_ext.admin.resolver import Resolver
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.scalars import UnfitError
from router_ext.config.url import parse_url

PRIVATE_VARIABLE: Final = "ROUTER_ALLOW_PRIVATE_BACKENDS"

DEADLINE_S: Final = 2.0
"""How long a name may take to be looked up."""

_FLAGS: Final = {"": False, "false": False, "true": True}

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host and port. Raises OSError and UnicodeError."""


def private_allowed(environ: Mapping[str, str]) -> bool:
    """Whether backends that the API adds may have private addresses. Raises ConfigError for another word than true and
    false.
    """
    value = environ.get(PRIVATE_VARIABLE, "").lower()
    if value not in _FLAGS:
        raise ConfigError("environment", [Problem(f"env {PRIVATE_VARIABLE}", 0, "must be true or false")])
    return _FLAGS[value]


@dataclass(frozen=True, slots=True)
class Targets:
    """What URLs may lead to. ``lookup`` is given up after ``deadline_s``."""

    allow_private: bool
    lookup: Lookup = field(default_factory=Resolver)
    deadline_s: float = DEADLINE_S

    async def objection(self, url: object) -> str | None:
        """Why a backend may not have this URL, as the message of a problem; None when it may, and for what is no URL,
        which whoever reads the configuration refuses.

        Every address of the host counts. Envoy looks the name up again by itself, now and later: who owns the name can
        still lead it elsewhere.
        """
        try:
            endpoint = parse_url(url) if isinstance(url, str) else None
        except UnfitError:
            return None
        return None if endpoint is None else await self._objection_to(endpoint.host, endpoint.port)

    async def _objection_to(self, host: str, port: int) -> str | None:
        if is_metadata_name(host):
            return "the host is a cloud's metadata service"
        try:
            found = await asyncio.wait_for(self.lookup(host, port), self.deadline_s)
        except (OSError, UnicodeError, TimeoutError):
            return "the host cannot be resolved"
        kinds = [kind for text in found if (kind := objection(text, allow_private=self.allow_private))]
        if not found:
            return "the host cannot be resolved"
        if not kinds:
            return None
        worst = next((kind for kind in kinds if kind != PRIVATE), PRIVATE)
        hint = f": set {PRIVATE_VARIABLE}=true to allow that" if worst == PRIVATE else ""
        return f"the host resolves to {worst}{hint}"
