"""Required capabilities: a rule's list, and vision for requests that hold an image."""

from collections.abc import Mapping, Sequence

from router_ext.model.request import VISION
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked


class Capabilities:
    """Keeps backends that have everything in ``required_capabilities``."""

    name = "capabilities"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Names what each removed backend lacks."""
        required = rule.required_capabilities
        if not required:
            return {}
        return {
            state.backend.name: f"lacks {', '.join(sorted(required - state.backend.capabilities))}"
            for state in candidates
            if not required <= state.backend.capabilities
        }


class Vision:
    """Sends requests with an image to backends that declare ``vision``, where any candidate declares it."""

    name = "vision"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Removes nothing when no candidate declares the capability: the operator has not said who can see."""
        if asked.request.content_type != VISION or not any(
            VISION in state.backend.capabilities for state in candidates
        ):
            return {}
        return {
            state.backend.name: "does not declare vision"
            for state in candidates
            if VISION not in state.backend.capabilities
        }
