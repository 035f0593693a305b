"""What every change is answered with."""

from typing import Generic, TypeVar

from pydantic import Field

from router_ext.admin.shapes.base import Shown
from router_ext.admin.shapes.errors import ProblemShown

T = TypeVar("T")


class ChangeAnswer(Shown, Generic[T]):
    """What a change did, or would have done."""

    changed: bool = Field(description="Whether anything is other than before; with dry_run whether it would be.")
    dry_run: bool = Field(description="True: it was validated as a whole, and nothing was changed.")
    before: T | None = Field(description="As it was; null for what was not there.")
    after: T | None = Field(description="As it is; null for what is not there any more.")
    warnings: list[ProblemShown] = Field(description="What is doubtful about the configuration since this change.")
