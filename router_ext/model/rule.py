"""Routing rules: which requests they match and which backends they allow."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Match:
    """Conditions, all of which must hold. An empty string or a tier of 0 matches everything.

    Text is compared exactly, apart from ``*`` in ``model`` and ``service``, which stands for any run of characters.
    ``content_type`` is ``text`` or ``vision``.
    """

    service: str = ""
    call_type: str = ""
    tier: int = 0
    model: str = ""
    lora: str = ""
    priority_level: str = ""
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. The highest ``priority`` wins; equal priorities keep the file's order.

    ``backends`` are names in order of preference. ``max_cost_1m`` is US dollars per 1,000,000 tokens and
    ``max_ttft_ms`` milliseconds; 0 means no limit.
    """

    name: str
    priority: int = 0
    match: Match = field(default_factory=Match)
    backends: tuple[str, ...] = ()
    max_cost_1m: float = 0.0
    required_capabilities: frozenset[str] = frozenset()
    max_ttft_ms: int = 0
