"""AB-03: a variant was taken by whatever identified the caller; what if nothing does, or the backend does not exist?"""

from pathlib import Path

import pytest

from router_ext.config.loader import ConfigError, parse
from router_ext.routing.split import caller_key, variant

UNKNOWN_BACKEND = """\
backends: [{name: a, url: 'http://a', type: vllm, model_name: m}]
ab_tests: [{name: t, match: {}, variant_a: a, variant_b: gone, split_pct: 10}]
"""


def test_a_caller_without_a_name_is_drawn_anew_with_each_request() -> None:
    """By the id of the request, so the share is right for anonymous traffic, too."""
    variants = [variant("cheaper", caller_key("", "", f"w0-{number}"), 25) for number in range(20_000)]
    assert abs(variants.count("b") - 5_000) <= 200


def test_a_session_does_not_change_its_variant_between_turns() -> None:
    """Nor does a persona between sessions: the ids of the requests do not matter to either."""
    for number in range(100):
        for named in ((f"anna-{number}", f"sess_{number}"), ("", f"sess_{number}")):
            turns = {variant("cheaper", caller_key(*named, f"w0-{turn}"), 50) for turn in range(10)}
            assert len(turns) == 1


def test_a_variant_whose_backend_is_not_configured_is_refused() -> None:
    """When the configuration is read."""
    with pytest.raises(ConfigError) as error:
        parse(UNKNOWN_BACKEND, "router.yaml", Path("/etc/router"), {})
    assert [problem.path for problem in error.value.problems] == ["ab_tests[0].variant_b"]
