"""The routes of the ingress listener: the way of a routed request, and who may pass while the router is away."""

from collections.abc import Iterator, Sequence, Set
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.node import Node
from router_ext.doctor.state import State
from router_ext.doctor.wiring import EXT_PROC, HttpListener
from router_ext.envoygen import names
from router_ext.envoygen.routes import PRIVATE_HEADERS
from router_ext.model import headers

_PER_ROUTE: Final = EXT_PROC.rpartition(".")[0] + ".ExtProcPerRoute"


def routes(state: State) -> Sequence[Finding] | None:
    """The rendered routes are there, lead where they should, and nothing takes their requests away."""
    if not state.ingress:
        return None
    expected = state.expected_ingress.routes
    wanted = [one for one in expected if _name(one) != names.SESSION_NEEDS_ROUTER]
    return [
        finding
        for one in state.ingress
        for finding in (*_missing(one, wanted), *_disordered(one, expected), *_shadowed(one), *_switched_off(one))
    ]


def _missing(listener: HttpListener, wanted: Sequence[Node]) -> Iterator[Finding]:
    for expected in wanted:
        name = _name(expected)
        found = _matching(listener, expected)
        if found is None:
            wrong = f"listener {listener.name} has no route for what `{name}` matches"
            yield Finding(wrong, f"copy route `{name}` of the rendered bootstrap, in its place")
        else:
            yield from _differing(name, found, expected)


def _matching(listener: HttpListener, expected: Node) -> Node | None:
    """The first route for the same requests."""
    return next((one for one in listener.routes if one.at("match").same_as(expected.at("match"))), None)


def _disordered(listener: HttpListener, expected: Sequence[Node]) -> Iterator[Finding]:
    """The first route that fits a request takes it."""
    found = [route for route in (_matching(listener, one) for one in expected) if route is not None]
    places = [listener.routes.index(route) for route in found]
    for place, following, route in zip(places, places[1:], found, strict=False):
        if following < place:
            wrong = f"route {_name(route)} of listener {listener.name} stands behind routes that it must precede"
            yield Finding(wrong, "bring the routes into the order of the rendered bootstrap")
            return


def _differing(name: str, found: Node, expected: Node) -> Iterator[Finding]:
    """Where a route leads and how long it waits. Retries and further headers are the operator's."""
    for key in ("cluster_header", "cluster", "timeout", "idle_timeout", "auto_host_rewrite"):
        is_value, needed = (node.at("route", key) for node in (found, expected))
        if not is_value.same_as(needed):
            yield Finding(f"route {name}: {key} is {_shown(is_value)}", f"route {name}: `{key}: {_shown(needed)}`")
    if found.at("direct_response", "status").value != expected.at("direct_response", "status").value:
        yield Finding(f"route {name} answers otherwise", f"copy route `{name}` of the rendered bootstrap")


def _shadowed(listener: HttpListener) -> Iterator[Finding]:
    """A route for everything ends the table: what stands behind it is never tried."""
    for place, one in enumerate(listener.routes[:-1]):
        match = one.at("match")
        if match.at("prefix").value == "/" and {key for key, _ in match.entries()} <= {"prefix", "case_sensitive"}:
            wrong = f"route {_name(one) or place} takes every request, and {len(listener.routes) - place - 1} follow it"
            yield Finding(wrong, f"move route {_name(one) or place} to the end of listener {listener.name}")
            return


def _switched_off(listener: HttpListener) -> Iterator[Finding]:
    for where, node in [("virtual host", listener.virtual_host), *(("route", one) for one in listener.routes)]:
        if _overrides(node).at("disabled").flag:
            wrong = f"{where} {_name(node)} switches ext_proc off"
            yield Finding(wrong, f"{where} {_name(node)}: remove `disabled: true` of {names.PROCESSOR_FILTER}")


def sessions(state: State) -> Sequence[Finding] | None:
    """Requests of sessions fail closed: each session header has its route, before the one for everything."""
    if not state.ingress:
        return None
    wanted = [one for one in state.expected_ingress.routes if _name(one) == names.SESSION_NEEDS_ROUTER]
    return [finding for listener in state.ingress for one in wanted for finding in _session(listener, one)]


def _session(listener: HttpListener, expected: Node) -> Iterator[Finding]:
    header = next(one.at("name").text for one in expected.at("match", "headers").each())
    found = _matching(listener, expected)
    copy = f"copy the routes `{names.SESSION_NEEDS_ROUTER}` of the rendered bootstrap before `{names.FAIL_OPEN}`"
    if found is None or not found.at("direct_response").exists:
        yield Finding(f"requests with {header} pass while the router is away", copy)
    elif _overrides(found).at("overrides", "failure_mode_allow").value is not False:
        wrong = f"the end of an answer with {header} can be a turn that nobody kept"
        yield Finding(wrong, f"that route, {names.PROCESSOR_FILTER}: `overrides: {{failure_mode_allow: false}}`")


def routing_headers(state: State) -> Sequence[Finding] | None:
    """Headers that only the router may set are removed from what clients and backends send."""
    if not state.ingress:
        return None
    ours = state.expected.clusters.keys()
    return [finding for one in state.ingress for finding in (*_from_clients(one), *_to_and_from_backends(one, ours))]


def _from_clients(listener: HttpListener) -> Iterator[Finding]:
    mutations = [
        mutation
        for extension in listener.manager.at("early_header_mutation_extensions").each()
        for mutation in extension.at("typed_config", "mutations").each()
    ]
    removed = {str(one.at("remove").value).lower() for one in mutations}
    prefixes = [one.at("remove_on_match", "key_matcher", "prefix").text for one in mutations]
    kept = [
        f"{name}*" if name.endswith("-") else name
        for name in (headers.CLUSTER, headers.EGRESS_FLAGS, "x-envoy-")
        if name not in removed and not any(prefix and name.startswith(prefix) for prefix in prefixes)
    ]
    if kept:
        wrong = f"listener {listener.name} takes {', '.join(kept)} from clients"
        yield Finding(wrong, "copy `early_header_mutation_extensions` from the rendered bootstrap")


def _to_and_from_backends(listener: HttpListener, ours: Set[str]) -> Iterator[Finding]:
    """Of the routes that lead to ``ours``, the clusters of backends. A list of a virtual host counts for all routes."""
    leading = [
        one
        for one in listener.routes
        if one.at("route", "cluster_header").text == headers.CLUSTER or one.at("route", "cluster").text in ours
    ]
    for key, whom in (("request_headers_to_remove", "to backends"), ("response_headers_to_remove", "to clients")):
        of_all = _removed(listener.virtual_host, key)
        for one in leading:
            kept = set(PRIVATE_HEADERS) - _removed(one, key) - of_all
            if kept:
                wrong = f"route {_name(one)} passes {len(kept)} headers of the router on {whom}: {min(kept)}"
                yield Finding(wrong, f"route {_name(one)}: copy `{key}` from the rendered bootstrap")


def _removed(node: Node, key: str) -> set[str]:
    return {one.text.lower() for one in node.at(key).each()}


def _overrides(node: Node) -> Node:
    """The settings of ext_proc on a route or virtual host, whatever the filter is called."""
    per_filter = (below for _, below in node.at("typed_per_filter_config").entries())
    return next((one for one in per_filter if one.is_type(_PER_ROUTE)), Node())


def _name(route: Node) -> str:
    return route.at("name").text


def _shown(node: Node) -> str:
    return str(node.value).lower() if isinstance(node.value, bool) else node.text or "not set"
