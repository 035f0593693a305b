"""What a backend must have for a request: each filter, on both sides of its boundary, with the reason that it gives."""

from collections.abc import Mapping

from router_ext.model.backend import Backend
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.filters import Filter
from router_ext.routing.filters.capabilities import Capabilities, Vision
from router_ext.routing.filters.cost import Cost
from router_ext.routing.filters.lora import LoraAdapter
from tests.fakes.domain import backend, request

PLAIN = Rule("r")


def _removed(
    test: Filter, *backends: Backend, of: InferenceRequest | None = None, rule: Rule = PLAIN
) -> Mapping[str, str]:
    return test.removed([BackendState(item, Health.HEALTHY) for item in backends], Asked(of or request(), {}), rule)


def test_capabilities_must_all_be_there() -> None:
    """The reason lists what is missing, in alphabetical order."""
    rule = Rule("r", required_capabilities=frozenset({"vision", "json_output"}))
    full = backend("full", capabilities=("json_output", "vision", "more"))
    half = backend("half", capabilities=("vision",))
    assert _removed(Capabilities(), full, half, backend("none"), rule=rule) == {
        "half": "lacks json_output",
        "none": "lacks json_output, vision",
    }


def test_without_required_capabilities_every_backend_stays() -> None:
    """An empty list asks for nothing."""
    assert _removed(Capabilities(), backend()) == {}


def test_the_price_may_reach_the_ceiling() -> None:
    """5.0 passes a ceiling of 5, 5.01 does not; without prices a backend costs nothing."""
    rule = Rule("r", max_cost_1m=5.0)
    backends = backend("equal", cost=5.0), backend("over", cost=5.01), backend("free")
    assert _removed(Cost(), *backends, rule=rule) == {"over": "costs $5.01 per 1M tokens, over $5"}


def test_the_higher_of_the_two_prices_counts() -> None:
    """Also when only one of them is known."""
    rule = Rule("r", max_cost_1m=5.0)
    dear_in = Backend("in", backend().endpoint, backend().type, "m", cost_input_1m=6.0, cost_output_1m=1.0)
    dear_out = Backend("out", backend().endpoint, backend().type, "m", cost_output_1m=6.0)
    assert set(_removed(Cost(), dear_in, dear_out, rule=rule)) == {"in", "out"}


def test_without_a_ceiling_no_price_is_too_high() -> None:
    """0 means no limit."""
    assert _removed(Cost(), backend(cost=1e6)) == {}


def test_a_model_name_that_is_an_adapter_keeps_the_backends_that_have_it() -> None:
    """The base model would answer as somebody else."""
    backends = backend("with", adapters=("sql",)), backend("without")
    assert _removed(LoraAdapter(), *backends, of=request("sql")) == {"without": "does not have the adapter"}


def test_without_any_such_adapter_every_backend_stays() -> None:
    """Any available one serves then."""
    backends = backend("with", adapters=("sql",)), backend("without")
    assert _removed(LoraAdapter(), *backends, of=request("chat")) == {}
    assert _removed(LoraAdapter(), *backends, of=request("")) == {}


def test_an_image_goes_where_vision_is_declared() -> None:
    """A text request may go anywhere."""
    backends = backend("sees", capabilities=("vision",)), backend("blind")
    image = request(content_type="vision")
    assert _removed(Vision(), *backends, of=image) == {"blind": "does not declare vision"}
    assert _removed(Vision(), *backends, of=request()) == {}


def test_an_image_may_go_anywhere_where_nobody_declares_vision() -> None:
    """The operator has not said who can see."""
    assert _removed(Vision(), backend("a"), backend("b"), of=request(content_type="vision")) == {}
