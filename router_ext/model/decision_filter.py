"""Which decisions somebody asks for."""

from msgspec import Struct

from router_ext.model.decision import Decision


class DecisionFilter(Struct, frozen=True):
    """Conditions, all of which must hold; an empty one always does. Texts are compared exactly.

    ``request_id`` is a decision's id or the request's own.
    """

    service: str = ""
    rule: str = ""
    backend: str = ""
    request_id: str = ""

    def matches(self, decision: Decision, backend: str = "") -> bool:
        """True when it is asked for. ``backend`` is another one that may be the one asked for, "" for none."""
        return (
            self.service in ("", decision.request.caller.service)
            and self.rule in ("", decision.rule)
            and self.backend in ("", decision.backend, backend)
            and self.request_id in ("", decision.id, decision.request_id)
        )


ANY: DecisionFilter = DecisionFilter()
"""Asks for all of them."""
