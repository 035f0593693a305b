"""What all bodies have in common."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Shown(BaseModel):
    """A body that the API gives."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Given(BaseModel):
    """A body that the API takes: an unknown key is an error, and so is a number that JSON does not know, or a value of
    another kind, as in ``router.yaml``: true is no number and "5" neither.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


def _reachable(name: str) -> str:
    """Clients take . and .. out of a path before they send it, also percent-encoded; no path holds unprintables."""
    if name in (".", "..") or not name.isprintable():
        raise ValueError("must be printable, and another name than . and ..")
    return name


PathName = Annotated[str, AfterValidator(_reachable)]
"""A name that a path can end in."""
