"""Sessions."""

from typing import Any, Literal

from pydantic import Field, SecretStr

from router_ext.admin.shapes.base import Given, Shown


class SessionShown(Shown):
    """One session without its content and its owner."""

    id: str
    tokens: int
    turns: int
    bytes: int
    created: str
    last_used: str


class SessionList(Shown):
    """Sessions, most recently used first."""

    sessions: list[SessionShown]


class SessionDeleted(Shown):
    """A session was destroyed, or would have been."""

    deleted: bool
    dry_run: bool = Field(description="True: the session is there, and nothing was destroyed.")


class Credential(Given):
    """What the caller sends as its credential."""

    header: Literal["authorization", "x-api-key", "api-key", "x-goog-api-key"] = "authorization"
    value: SecretStr = Field(
        min_length=1, max_length=8192, description="The header's whole value, as Bearer KEY. Only a digest is kept."
    )


class NewSession(Given):
    """A conversation to go on with. It belongs to the callers with this service and credential."""

    messages: list[dict[str, Any]] = Field(
        min_length=1, max_length=10_000, description="Messages of a chat request, oldest first."
    )
    service: str = Field(default="", max_length=128, description="What the caller sends as x-kronaxis-service.")
    credential: Credential | None = Field(default=None, description="Null for callers that send none.")


class SessionCreated(Shown):
    """A session was begun, or would have been."""

    id: str | None = Field(description="To send as x-kronaxis-session-id; null with dry_run.")
    created: bool
    dry_run: bool
    messages: int = Field(ge=1)
    tokens: int = Field(ge=0, description="The context's size, estimated.")
    bytes: int = Field(ge=1)
