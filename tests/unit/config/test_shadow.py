"""Settings of shadows."""

import pytest

from router_ext.config.sections import AbTest
from router_ext.model.rule import Match
from tests.unit.config.samples import BACKEND, config, refused

PAIR = f"backends:\n{BACKEND}}}\n  - {{name: b, url: 'http://127.0.0.1:8001', type: vllm, model_name: m}}\n"


def _with(extra: str) -> str:
    test = f"{{name: t, match: {{service: s}}, variant_a: a, variant_b: b, split_pct: 10, mode: shadow{extra}}}"
    return f"{PAIR}ab_tests: [{test}]\n"


def test_32_shadows_and_a_similarity_of_0_8_are_the_defaults() -> None:
    """And no file."""
    read = config(_with(""))
    expected = AbTest("t", Match(service="s"), "a", "b", 10.0, True, "shadow", 32, 0.8)
    assert (read.ab_tests, read.shadow_log_path) == ((expected,), None)


@pytest.mark.parametrize(
    ("setting", "fits"),
    [
        ("max_inflight: 1", True),
        ("max_inflight: 0", False),
        ("max_inflight: 10000", True),
        ("max_inflight: 10001", False),
        ("similarity_threshold: 0", True),
        ("similarity_threshold: 1", True),
        ("similarity_threshold: 1.01", False),
    ],
)
def test_places_and_thresholds_have_bounds(setting: str, fits: bool) -> None:
    """Both ends are allowed."""
    text = _with(f", {setting}")
    if fits:
        assert config(text).ab_tests
    else:
        assert list(refused(text)) == [f"ab_tests[0].{setting.partition(':')[0]}"]


@pytest.mark.parametrize("enabled", [True, False])
def test_pairs_and_shadows_have_two_files(enabled: bool) -> None:
    """Two writers must not share one; an export that is off writes none."""
    gate = f"{{fallback_backend: b, dpo_export: {{enabled: {str(enabled).lower()}, output_path: x.jsonl}}}}"
    text = f"{PAIR}quality_gate: {gate}\nshadow_log_path: x.jsonl\n"
    if enabled:
        assert refused(text) == {"shadow_log_path": "is the file of quality_gate.dpo_export already"}
    else:
        assert config(text).shadow_log_path is not None
