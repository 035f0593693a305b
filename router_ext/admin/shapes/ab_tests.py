"""A/B tests."""

from typing import Any

from pydantic import Field

from router_ext.admin.shapes.base import Shown


class VariantShown(Shown):
    """One variant; the figures are absent for a test with shadows."""

    backend: str
    requests: int = 0
    errors: int = 0
    fallbacks: int = 0
    answers: int = 0
    latency_mean_ms: float | None = None
    latency_p95_ms: float | None = None
    ttft_p95_ms: float | None = None
    usages: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


class Variants(Shown):
    """Control and backend under test."""

    a: VariantShown
    b: VariantShown


class SimilarityShown(Shown):
    """How alike the answers are, from 0 to 1."""

    mean: float | None
    p10: float | None
    p50: float | None
    threshold: float
    share_alike: float | None


class LatencyShown(Shown):
    """Milliseconds."""

    a_mean_ms: float | None
    b_mean_ms: float | None
    delta_mean_ms: float | None


class SchemaShown(Shown):
    """Answers that fit the schema of their request."""

    samples: int
    a_valid: int
    b_valid: int


class ShadowCost(Shown):
    """US dollars."""

    samples: int
    a_per_1000_usd: float | None
    b_per_1000_usd: float | None
    requests_per_day: float | None
    saving_per_day_usd: float | None


class ShadowShown(Shown):
    """What shadows have shown: see docs/experiments.md."""

    results: dict[str, int]
    samples: int
    similarity: SimilarityShown
    length_ratio_mean: float | None
    latency: LatencyShown
    schema_: SchemaShown = Field(alias="schema")
    cost: ShadowCost


class AbTestShown(Shown):
    """One test."""

    name: str
    mode: str = Field(description="split or shadow.")
    active: bool
    match: dict[str, Any] = Field(description="The conditions that are set.")
    split_pct: float
    since: str = Field(default="", description="When its statistics began; absent for a test with shadows.")
    variants: Variants
    shadow: ShadowShown | None = Field(default=None, description="Absent for a test that splits the traffic.")


class AbTests(Shown):
    """Every test in the file's order."""

    ab_tests: list[AbTestShown]
