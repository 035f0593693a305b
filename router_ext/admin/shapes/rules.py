"""Rules."""

from pydantic import Field

from router_ext.admin.shapes.backends import Origin
from router_ext.admin.shapes.base import Given, PathName, Shown


class MatchSpec(Given):
    """Conditions, all of which must hold; what is left out matches all."""

    service: str | None = Field(default=None, max_length=256, description="* stands for any characters.")
    call_type: str | None = Field(default=None, max_length=256)
    tier: int | None = Field(default=None, ge=0)
    model: str | None = Field(default=None, max_length=256, description="* stands for any characters.")
    lora: str | None = Field(default=None, max_length=256)
    priority_level: str | None = Field(default=None, max_length=256)
    content_type: str | None = Field(default=None, max_length=256, description="text or vision.")


class RuleBody(Given):
    """A rule with the keys of router.yaml but its name."""

    priority: int | None = Field(default=None, description="The highest wins; equal ones keep their order.")
    match: MatchSpec | None = None
    backends: list[str] = Field(min_length=1, max_length=1000, description="In order of preference.")
    max_cost_1m: float | None = Field(default=None, ge=0, description="US dollars per 1,000,000 tokens; 0: no limit.")
    required_capabilities: list[str] = Field(default=[], max_length=1000)
    max_ttft_ms: int | None = Field(default=None, ge=0, description="Milliseconds; 0: no limit.")


class RuleSpec(RuleBody):
    """A rule with the keys of router.yaml."""

    name: PathName = Field(min_length=1, max_length=128)


class MatchShown(Shown):
    """Conditions; "" and 0 match all."""

    service: str
    call_type: str
    tier: int
    model: str
    lora: str
    priority_level: str
    content_type: str


class RuleShown(Shown):
    """A rule as it is in force, defaults included."""

    name: str
    priority: int
    match: MatchShown
    backends: list[str]
    max_cost_1m: float
    required_capabilities: list[str]
    max_ttft_ms: int
    origin: Origin = Field(description="Whether router.yaml or the API says it.")


class Rules(Shown):
    """Every rule in the configuration's order. The highest priority is tried first."""

    rules: list[RuleShown]
