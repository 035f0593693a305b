"""Errors."""

from pydantic import Field

from router_ext.admin.shapes.base import Shown


class ProblemShown(Shown):
    """One finding."""

    path: str = Field(description="Where it is, like body.url or rules[2].backends; empty for the whole.")
    line: int = Field(ge=0, description="Line of the configuration file; 0 outside of it.")
    message: str = Field(description="What is wrong, or doubtful. Quotes no credential.")


class ErrorDetail(Shown):
    """What went wrong."""

    message: str
    type: str = Field(description="Kind of error, as OpenAI's APIs name them.")
    param: str | None = Field(description="The first place that is wrong.")
    code: str = Field(description="The error's name, for programs.")
    problems: list[ProblemShown] = Field(default=[], description="Every finding; absent where there is but one cause.")


class ErrorAnswer(Shown):
    """The body of every error."""

    error: ErrorDetail
