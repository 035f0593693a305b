"""The clusters: the router's own, one a backend, and the one for failing open."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.node import Node
from router_ext.doctor.state import EnvoyState, State
from router_ext.doctor.wiring import endpoints
from router_ext.envoygen.names import CLUSTERS_FILE, FAIL_OPEN_CLUSTER, PROCESSOR_CLUSTER

_DEFAULTS: Final = {"max_connections": 1024, "max_pending_requests": 1024, "max_requests": 1024}
"""Limits of a cluster's breakers, and what each is when it is not written."""

_BACKEND_PREFIX: Final = "backend-"
_HTTP: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def processor(state: State) -> Sequence[Finding] | None:
    """The clusters of the router lead to it, over HTTP/2."""
    if state.running is None:
        return None
    names = [name for name in state.expected.clusters if _is_of_processor(name)]
    return [finding for name in names for finding in _compared(state, state.running, name, "bootstrap.yaml")]


def backends(state: State) -> Sequence[Finding] | None:
    """Each backend has its cluster, which leads where the configuration says."""
    if state.running is None:
        return None
    names = [name for name in state.expected.clusters if not _is_of_processor(name)]
    refused = state.running.counters.total("cluster_manager.cds.update_rejected")
    findings = [finding for name in names for finding in _compared(state, state.running, name, CLUSTERS_FILE)]
    if findings and refused:
        findings.append(
            Finding(f"Envoy refused {refused:.0f} cluster files", "its log names the line: grep `cds` in it")
        )
    return findings


def _is_of_processor(name: str) -> bool:
    return name == PROCESSOR_CLUSTER or name.startswith(f"{PROCESSOR_CLUSTER}-")


def _compared(state: State, envoy: EnvoyState, name: str, file: str) -> Iterator[Finding]:
    expected, running = state.expected.clusters[name], envoy.wiring.clusters.get(name)
    where = f"{file}, cluster {name}"
    if running is None:
        mend = f"render it again: router-ext envoy-config FILE --out {state.config.server.envoy_dir}"
        yield Finding(f"Envoy has no cluster {name}", mend)
        return
    wanted, found = endpoints(expected), _addresses(envoy, name, running)
    if wanted != found:
        yield Finding(f"cluster {name} leads to {_listed(found)}", f"{where}: its endpoint is {_listed(wanted)}")
    yield from _tls(name, running.at("transport_socket"), expected.at("transport_socket"), where)
    if _speaks_http2(expected) and not _speaks_http2(running):
        mend = f"{where}: copy `typed_extension_protocol_options`"
        yield Finding(f"cluster {name} does not speak HTTP/2, which gRPC needs", mend)


def _tls(name: str, running: Node, expected: Node, where: str) -> Iterator[Finding]:
    """Where the trusted certificates are is the operator's to say; whether they are asked for is not."""
    if running.exists != expected.exists:
        mend = f"{where}: {'copy' if expected.exists else 'remove'} `transport_socket`"
        yield Finding(f"cluster {name} speaks {'TLS' if running.exists else 'plain text'}", mend)
    elif not _asks_for_certificate(running, expected):
        wrong = f"cluster {name} does not check the certificate of its backend as it should"
        yield Finding(wrong, f"{where}: copy `transport_socket`")


def _asks_for_certificate(running: Node, expected: Node) -> bool:
    trusts = _tls_part(running, "trusted_ca").exists or not _tls_part(expected, "trusted_ca").exists
    parts = ("sni", "match_typed_subject_alt_names")
    return trusts and all(_tls_part(running, part).same_as(_tls_part(expected, part)) for part in parts)


def _tls_part(socket: Node, key: str) -> Node:
    """The SNI, or a part of what a certificate must be."""
    typed = socket.at("typed_config")
    return typed.at(key) if key == "sni" else typed.at("common_tls_context", "validation_context", key)


def _addresses(envoy: EnvoyState, name: str, running: Node) -> tuple[str, ...]:
    """Those of the configuration; of a cluster that is told them by other means those that it has."""
    if running.at("load_assignment").exists:
        return endpoints(running)
    return tuple(sorted(host.address for host in envoy.hosts.get(name, ())))


def _speaks_http2(cluster: Node) -> bool:
    options = cluster.at("typed_extension_protocol_options", _HTTP, "explicit_http_config", "http2_protocol_options")
    return options.exists or cluster.at("http2_protocol_options").exists


def _listed(addresses: Sequence[str]) -> str:
    return ", ".join(addresses) or "nowhere"


def strays(state: State) -> Sequence[Finding] | None:
    """No cluster of a backend that neither the file nor the router knows."""
    if state.running is None or state.answering is None:
        return None
    known = {f"{_BACKEND_PREFIX}{one.name}" for one in state.answering.backends} | set(state.expected.clusters)
    found = (name for name in state.running.wiring.clusters if name.startswith(_BACKEND_PREFIX))
    return [
        Finding(f"cluster {name} belongs to no backend", f"remove cluster {name} from {CLUSTERS_FILE}")
        for name in sorted(set(found) - known)
    ]


def breakers(state: State) -> Sequence[Finding] | None:
    """No cluster refuses what the router lets through."""
    if state.running is None:
        return None
    running = state.running.wiring.clusters
    return [
        Finding(
            f"cluster {name} takes {limit:,} at once ({key}), and {needed:,} can be needed",
            f"cluster {name}, circuit_breakers, thresholds: `{key}: {_rendered(state, name, key)}`",
        )
        for name, needed in _needs(state).items()
        for key, limit in _limits(running.get(name, Node())).items()
        if name in running and limit < needed
    ]


def _needs(state: State) -> Mapping[str, int]:
    """Exchanges at once, by cluster. The router has a stream for each connection of a client at the least."""
    server = state.config.server
    streams = {name: server.max_connections for name in state.expected.clusters if _is_of_processor(name)}
    of_backends = {one.cluster: one.max_concurrent for one in state.config.backends}
    failing_open = sum(one.max_concurrent for one in state.config.fail_open_backends)
    return {**streams, **of_backends, FAIL_OPEN_CLUSTER: failing_open}


def _limits(cluster: Node) -> dict[str, int]:
    """Of the default priority, which is the one that requests have."""
    thresholds = cluster.at("circuit_breakers", "thresholds").each()
    usual = (one for one in thresholds if one.at("priority").text in ("", "DEFAULT"))
    chosen = next(usual, Node())
    return {key: chosen.at(key).whole(default) for key, default in _DEFAULTS.items()}


def _rendered(state: State, name: str, key: str) -> int:
    return _limits(state.expected.clusters[name])[key]
