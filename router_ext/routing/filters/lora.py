"""LoRA adapters: a model name that is an adapter goes where the adapter is loaded."""

from collections.abc import Mapping, Sequence

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked


class LoraAdapter:
    """Keeps the backends that have the adapter which the request names, where any candidate has it."""

    name = "lora"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Removes nothing when no candidate has an adapter of that name."""
        adapter = asked.request.model
        if not any(adapter in state.backend.lora_adapters for state in candidates):
            return {}
        return {
            state.backend.name: "does not have the adapter"
            for state in candidates
            if adapter not in state.backend.lora_adapters
        }
