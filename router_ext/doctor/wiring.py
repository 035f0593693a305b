"""What Envoy is configured to do, as far as the checks look: from its ``/config_dump``, or from a rendered bootstrap.

Both are read into the same shape, so that a check can hold what runs against what would be rendered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from router_ext.doctor.node import Node
from router_ext.envoygen.names import PROCESSOR_CLUSTER

HTTP: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
EXT_PROC: Final = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
_LISTENERS: Final = "envoy.admin.v3.ListenersConfigDump"
_CLUSTERS: Final = "envoy.admin.v3.ClustersConfigDump"
_ROUTES: Final = "envoy.admin.v3.RoutesConfigDump"
_BOOTSTRAP: Final = "envoy.admin.v3.BootstrapConfigDump"

DEFAULT_BUFFER_BYTES: Final = 1 << 20
"""What Envoy buffers where a listener or a cluster says nothing."""


@dataclass(frozen=True, slots=True)
class HttpFilter:
    """One HTTP filter. ``config`` is its typed configuration."""

    name: str
    config: Node
    disabled: bool

    @property
    def asks_processor(self) -> bool:
        """True for an ext_proc filter, whatever it is called."""
        return self.config.is_type(EXT_PROC)

    @property
    def processor(self) -> str:
        """The cluster that an ext_proc filter asks; "" for other filters."""
        return self.config.at("grpc_service", "envoy_grpc", "cluster_name").text if self.asks_processor else ""

    @property
    def kind(self) -> str:
        """Last but two part of the type's name: ``lua`` of ``envoy.extensions.filters.http.lua.v3.Lua``."""
        parts = self.config.at("@type").text.split(".")
        return parts[-3] if len(parts) > 2 else ""


@dataclass(frozen=True, slots=True)
class HttpListener:
    """One HTTP connection manager of a listener. ``host`` and ``port`` are those of the listener, which has one manager
    for each of its filter chains; ``virtual_host`` is the one of all domains, else the first.
    """

    name: str
    host: str
    port: int
    buffer_bytes: int
    manager: Node
    filters: tuple[HttpFilter, ...]
    virtual_host: Node

    @property
    def routes(self) -> tuple[Node, ...]:
        """The routes in the order in which Envoy tries them."""
        return tuple(self.virtual_host.at("routes").each())

    @property
    def processors(self) -> tuple[HttpFilter, ...]:
        """The ext_proc filters that ask the router and are not switched off; usually one."""
        return tuple(one for one in self.filters if one.processor == PROCESSOR_CLUSTER and not one.disabled)


@dataclass(frozen=True, slots=True)
class Wiring:
    """Listeners in their order, clusters by name. ``admin_host`` is "" when it is not told."""

    listeners: tuple[HttpListener, ...]
    clusters: Mapping[str, Node]
    admin_host: str

    def on_port(self, port: int) -> tuple[HttpListener, ...]:
        """The listeners for HTTP on ``port``."""
        return tuple(one for one in self.listeners if one.port == port)


def from_dump(dump: Node) -> Wiring:
    """What a ``/config_dump`` page says; empty where it says nothing."""
    sections = list(dump.at("configs").each())
    tables = dict(_route_tables(sections))
    listeners = [one for node in _listener_nodes(sections) for one in _http_listeners(node, tables)]
    clusters = {node.at("name").text: node for node in _cluster_nodes(sections)}
    admin = [_host(part.at("bootstrap", "admin", "address")) for part in _of_type(sections, _BOOTSTRAP)]
    return Wiring(tuple(listeners), clusters, next(iter(admin), ""))


def from_rendered(bootstrap: Node, clusters: Node) -> Wiring:
    """What a bootstrap and a cluster file say."""
    static = bootstrap.at("static_resources")
    listeners = [one for node in static.at("listeners").each() for one in _http_listeners(node, {})]
    nodes = [*static.at("clusters").each(), *clusters.at("resources").each()]
    by_name = {node.at("name").text: node for node in nodes}
    return Wiring(tuple(listeners), by_name, _host(bootstrap.at("admin", "address")))


def address_text(address: Node) -> str:
    """``HOST:PORT`` or ``unix:PATH``; "" for another kind of address."""
    path = address.at("pipe", "path").text
    if path:
        return f"unix:{path}"
    socket = address.at("socket_address")
    return f"{socket.at('address').text}:{socket.at('port_value').whole()}" if socket.exists else ""


def endpoints(cluster: Node) -> tuple[str, ...]:
    """The addresses in the cluster's configuration, sorted; none for a cluster that is told them by other means."""
    localities = cluster.at("load_assignment", "endpoints").each()
    found = (one.at("endpoint", "address") for locality in localities for one in locality.at("lb_endpoints").each())
    return tuple(sorted(map(address_text, found)))


def _of_type(sections: list[Node], name: str) -> Iterator[Node]:
    return (section for section in sections if section.is_type(name))


def _listener_nodes(sections: list[Node]) -> Iterator[Node]:
    for section in _of_type(sections, _LISTENERS):
        yield from (one.at("listener") for one in section.at("static_listeners").each())
        yield from (one.at("active_state", "listener") for one in section.at("dynamic_listeners").each())


def _cluster_nodes(sections: list[Node]) -> Iterator[Node]:
    for section in _of_type(sections, _CLUSTERS):
        for key in ("static_clusters", "dynamic_active_clusters"):
            yield from (one.at("cluster") for one in section.at(key).each())


def _route_tables(sections: list[Node]) -> Iterator[tuple[str, Node]]:
    for section in _of_type(sections, _ROUTES):
        for key in ("static_route_configs", "dynamic_route_configs"):
            tables = (one.at("route_config") for one in section.at(key).each())
            yield from ((table.at("name").text, table) for table in tables)


def _http_listeners(node: Node, tables: Mapping[str, Node]) -> Iterator[HttpListener]:
    for chain in [*node.at("filter_chains").each(), node.at("default_filter_chain")]:
        for one in chain.at("filters").each():
            manager = one.at("typed_config")
            if manager.is_type(HTTP):
                yield _http_listener(node, manager, tables)


def _http_listener(node: Node, manager: Node, tables: Mapping[str, Node]) -> HttpListener:
    by_name = tables.get(manager.at("rds", "route_config_name").text, Node())
    inline = manager.at("route_config")
    return HttpListener(
        name=node.at("name").text,
        host=_host(node.at("address")),
        port=node.at("address", "socket_address", "port_value").whole(),
        buffer_bytes=node.at("per_connection_buffer_limit_bytes").whole(DEFAULT_BUFFER_BYTES),
        manager=manager,
        filters=tuple(map(_http_filter, manager.at("http_filters").each())),
        virtual_host=_virtual_host(inline if inline.exists else by_name),
    )


def _http_filter(node: Node) -> HttpFilter:
    return HttpFilter(node.at("name").text, node.at("typed_config"), node.at("disabled").flag)


def _virtual_host(table: Node) -> Node:
    hosts = list(table.at("virtual_hosts").each())
    of_all = (host for host in hosts if any(name.value == "*" for name in host.at("domains").each()))
    return next(of_all, hosts[0] if hosts else Node())


def _host(address: Node) -> str:
    return address.at("socket_address", "address").text
