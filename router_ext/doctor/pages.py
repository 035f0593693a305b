"""From the pages of both admin interfaces to state. A page that is nonsense raises ``NonsenseError``."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

import orjson
from prometheus_client.parser import text_string_to_metric_families

from router_ext.doctor.node import Node
from router_ext.doctor.state import Host, RunningBackend
from router_ext.doctor.wiring import address_text


class NonsenseError(ValueError):
    """The page is not what its address promises. The message says what it is not."""


_HEALTHY: Final = frozenset({"HEALTHY", "DEGRADED"})
_AILING: Final = ("failed_active_health_check", "failed_outlier_check", "pending_active_hc")


def document(body: bytes) -> Node:
    """A page that is a JSON object."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NonsenseError("it is not JSON") from None
    if not isinstance(value, dict):
        raise NonsenseError("it is not a JSON object")
    return Node(value)


def counts_of_envoy(page: Node) -> dict[str, float]:
    """Counters and gauges by name, out of ``/stats?format=json``."""
    if not isinstance(page.at("stats").value, list):
        raise NonsenseError("it has no list of stats")
    named = (entry for entry in page.at("stats").each() if isinstance(entry.at("value").value, int))
    return {entry.at("name").text: float(entry.at("value").whole()) for entry in named}


def hosts_of(page: Node) -> Mapping[str, tuple[Host, ...]]:
    """Endpoints by cluster, out of ``/clusters?format=json``."""
    if not isinstance(page.at("cluster_statuses").value, list):
        raise NonsenseError("it has no list of clusters")
    return {
        cluster.at("name").text: tuple(map(_host, cluster.at("host_statuses").each()))
        for cluster in page.at("cluster_statuses").each()
    }


def _host(status: Node) -> Host:
    health = status.at("health_status")
    ailing = any(health.at(name).flag for name in _AILING)
    return Host(address_text(status.at("address")), health.at("eds_health_status").text in _HEALTHY and not ailing)


def counts_of_router(body: bytes) -> dict[str, float]:
    """The sums of the samples of a Prometheus text page, by the samples' names."""
    sums: defaultdict[str, float] = defaultdict(float)
    try:
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                sums[sample.name] += sample.value
    except (ValueError, KeyError, IndexError):
        raise NonsenseError("it is not a page of metrics") from None
    return dict(sums)


def backends_of(health: Node) -> tuple[RunningBackend, ...]:
    """The router's backends, out of ``/health``."""
    if not health.at("status").text or not isinstance(health.at("backends").value, list):
        raise NonsenseError("it is not the health page of a router")
    return tuple(_backends(health))


def _backends(health: Node) -> Iterator[RunningBackend]:
    for one in health.at("backends").each():
        yield RunningBackend(one.at("name").text, one.at("health").text, one.at("circuit_open").flag)
