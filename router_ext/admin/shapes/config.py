"""The running configuration."""

from typing import Any

from pydantic import Field

from router_ext.admin.shapes.base import Shown


class LastError(Shown):
    """Why the last change of the file was not taken over."""

    message: str
    at: str = Field(description="ISO 8601 in UTC.")


class ApiChanges(Shown):
    """What the API has changed, which stands above the file; null takes away what the file has."""

    backends: dict[str, dict[str, Any] | None]
    rules: dict[str, dict[str, Any] | None]
    budgets: dict[str, dict[str, Any] | None]
    drained: list[str]


class ConfigShown(Shown):
    """What runs, whatever the file on disk says by now."""

    digest: str = Field(description="SHA-256 of the file that it came from, in hexadecimal.")
    loaded_at: str = Field(description="When it was taken over: ISO 8601 in UTC.")
    last_error: LastError | None = Field(description="Null since a change was taken over.")
    changes: ApiChanges
    config: dict[str, Any] = Field(description="The configuration in force; every secret is masked.")


class ConfigVersion(Shown):
    """Which configuration runs."""

    digest: str
    loaded_at: str
    backends: list[str]
    rules: list[str]
