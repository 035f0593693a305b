"""Providers whose keys stand in the environment. Only the variables' names are told; their values go nowhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from router_ext.model.backend import BackendType

_USABLE: Final = re.compile(r"(?!.*\$\{)[\x21-\x7e]{1,8192}")


@dataclass(frozen=True, slots=True)
class Provider:
    """``variables`` may hold its key: the first that is set counts. ``model`` is one of its models, for a beginning;
    ``pattern`` fits the names of most of them.
    """

    name: str
    type: BackendType
    variables: tuple[str, ...]
    url: str
    model: str
    pattern: str


PROVIDERS: Final = (
    Provider("openai", BackendType.OPENAI, ("OPENAI_API_KEY",), "https://api.openai.com", "gpt-4o-mini", "gpt-*"),
    Provider(
        "anthropic",
        BackendType.ANTHROPIC,
        ("ANTHROPIC_API_KEY",),
        "https://api.anthropic.com",
        "claude-sonnet-4-5",
        "claude-*",
    ),
    Provider(
        "gemini",
        BackendType.GEMINI,
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "https://generativelanguage.googleapis.com",
        "gemini-2.5-flash",
        "gemini-*",
    ),
)


@dataclass(frozen=True, slots=True)
class Key:
    """A provider and the variable that holds its key."""

    provider: Provider
    variable: str


def keys_in(environ: Mapping[str, str]) -> tuple[list[Key], list[str]]:
    """The keys that are set, and the variables whose value can be no key; those that are empty are not looked at."""
    found: list[Key] = []
    unusable: list[str] = []
    for provider in PROVIDERS:
        given = [name for name in provider.variables if environ.get(name)]
        usable = [name for name in given if _USABLE.fullmatch(environ[name])]
        found += [Key(provider, name) for name in usable[:1]]
        unusable += [name for name in given if name not in usable]
    return found, unusable
