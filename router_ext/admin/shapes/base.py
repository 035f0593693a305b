"""What all bodies have in common."""

from pydantic import BaseModel, ConfigDict


class Shown(BaseModel):
    """A body that the API gives."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Given(BaseModel):
    """A body that the API takes: an unknown key is an error, and so is a number that JSON does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
