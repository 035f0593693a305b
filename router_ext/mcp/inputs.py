"""What the tools take: the bodies of the admin API, with names and ``dry_run`` beside them."""

from typing import Annotated

from pydantic import Field

from router_ext.admin.explain import ExplainBody
from router_ext.admin.shapes.backends import BackendSpec
from router_ext.admin.shapes.base import Given, PathName
from router_ext.admin.shapes.budgets import BudgetSpec
from router_ext.admin.shapes.rules import RuleSpec
from router_ext.admin.shapes.sessions import NewSession
from router_ext.costs.days import Period

Name = Annotated[PathName, Field(min_length=1, max_length=128)]


class Nothing(Given):
    """No arguments."""


class Rehearsal(Given):
    """A change that can be tried."""

    dry_run: bool = Field(
        default=False, description="True: validate the change as a whole and say what would be, but change nothing."
    )


class Costs(Given):
    """A period."""

    period: Period = Field(default=Period.TODAY, description="In the router's time zone.")


class Sessions(Given):
    """How many."""

    limit: int = Field(default=100, ge=1, le=1000, description="Most sessions to list.")


class AddBackend(BackendSpec, Rehearsal):
    """A backend."""


class RemoveBackend(Rehearsal):
    """A backend."""

    name: Name = Field(description="The backend's name, as router_backends lists it.")


class DrainBackend(Rehearsal):
    """A backend."""

    name: Name = Field(description="The backend's name, as router_backends lists it.")
    drain: bool = Field(default=True, description="True: no new requests. False: it gets requests again.")


class AddRule(RuleSpec, Rehearsal):
    """A rule."""


class RemoveRule(Rehearsal):
    """A rule."""

    name: Name = Field(description="The rule's name, as router_rules lists it.")


class UpdateBudget(BudgetSpec, Rehearsal):
    """A budget."""

    service: Name = Field(description="The service; default is for services without a budget of their own.")


class CreateSession(NewSession, Rehearsal):
    """A conversation."""


class Explain(ExplainBody):
    """A request that is not sent."""
