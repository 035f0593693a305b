"""What became of the shadows, by router_ext's own count."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.shadow.stack import HANGING_BACKEND, Arm
from router_ext.model.shadow import ShadowResult

_ENDED: Final = "kronaxis_router_shadow_total"
_OPEN: Final = "kronaxis_router_backend_active_requests"


class NoShadowsError(Exception):
    """Requests had no shadows of a kind that is measured."""


def counts(page: str) -> dict[str, int]:
    """From the metrics page. Only shadows reach the backend that never answers."""
    samples = list(_samples(page))
    healthy, full = {"test": Arm.HEALTHY.value}, {"test": Arm.FULL.value}
    drawn_healthy = _sum(samples, _ENDED, healthy)
    compared = _sum(samples, _ENDED, healthy | {"result": ShadowResult.COMPARED.value})
    return {
        "shadows_compared": compared,
        "shadows_not_compared": drawn_healthy - compared,
        "shadows_hanging": _sum(samples, _OPEN, {"backend": HANGING_BACKEND}),
        "shadows_dropped": _sum(samples, _ENDED, full | {"result": ShadowResult.DROPPED.value}),
        "shadows_hung_ended": _sum(samples, _ENDED, {"test": Arm.HUNG.value}),
    }


def check(seen: Mapping[str, int]) -> Mapping[str, int]:
    """The counts, if there were shadows of each kind. Raises NoShadowsError."""
    for name in ("shadows_compared", "shadows_hanging", "shadows_dropped"):
        if not seen[name]:
            raise NoShadowsError(f"{name} is 0")
    return seen


def _samples(page: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(page):
        yield from family.samples


def _sum(samples: list[Sample], name: str, labels: Mapping[str, str]) -> int:
    return int(sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items()))
