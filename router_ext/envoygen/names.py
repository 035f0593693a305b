"""Names that the generated configuration shares with the processor, the access log and the tests."""

from typing import Final

PROCESSOR_CLUSTER: Final = "router-ext"
"""Cluster of the ext_proc and access log services."""


def worker_cluster(worker: int) -> str:
    """Cluster of one of several workers, by which the access log entries of its own decisions reach it."""
    return f"{PROCESSOR_CLUSTER}-{worker}"


FAIL_OPEN_CLUSTER: Final = "fail-open"
"""Cluster that answers while the processor is away."""

PROCESSOR_FILTER: Final = "envoy.filters.http.ext_proc"
"""Name of the filter that asks the processor."""

RELAYED: Final = "relayed"
ROUTED: Final = "routed"
SESSION_NEEDS_ROUTER: Final = "session-needs-router"
FAIL_OPEN: Final = "fail-open"
EGRESS: Final = "egress"
"""Names of the routes, as the access log reports them."""

INGRESS_LOG: Final = "router_ext.ingress"
"""``log_name`` of the gRPC access log."""
EGRESS_LOG: Final = "router_ext.egress"
"""``log`` field of the egress listener's JSON access log."""

PROCESSOR_NAMESPACE: Final = "router_ext"
"""Dynamic metadata that the processor may set."""
USAGE_NAMESPACE: Final = "router_ext.usage"
"""Dynamic metadata with what Envoy reads from an answer: the token counts, and how a stream ended."""
REQUEST_NAMESPACE: Final = "router_ext.request"
"""Dynamic metadata that Envoy's filters keep for the answer."""

BOOTSTRAP_FILE: Final = "bootstrap.yaml"
CLUSTERS_FILE: Final = "clusters.yaml"
