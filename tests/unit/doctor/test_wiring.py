"""What a ``/config_dump`` says, in each of the ways in which it can say it."""

import pytest

from router_ext.doctor.node import Node
from router_ext.doctor.state import Host
from router_ext.doctor.wiring import address_text, from_dump
from tests.unit.doctor.states import Document, changed, cluster, dump, good, listener, manager, reported, with_envoy


def test_listeners_of_a_management_server_are_read_too() -> None:
    """A listener that Envoy was sent stands under ``dynamic_listeners``."""

    def move(page: Document) -> None:
        section = page["configs"][2]
        section["dynamic_listeners"] = [{"active_state": entry} for entry in section.pop("static_listeners")]

    assert reported(changed(move)) == {}


def test_routes_of_a_management_server_are_found_by_name() -> None:
    """A connection manager with ``rds`` has its routes in a section of their own."""

    def move(page: Document) -> None:
        routes = manager(page).pop("route_config")
        manager(page)["rds"] = {"route_config_name": routes["name"]}
        kind = "type.googleapis.com/envoy.admin.v3.RoutesConfigDump"
        page["configs"].append({"@type": kind, "dynamic_route_configs": [{"route_config": routes}]})

    assert reported(changed(move)) == {}


def test_every_filter_chain_of_the_listener_counts() -> None:
    """A second chain, without the filter, is a second way in."""

    def add(page: Document) -> None:
        chain = dump()["configs"][2]["static_listeners"][0]["listener"]["filter_chains"][0]
        del chain["filters"][0]["typed_config"]["http_filters"][1]
        listener(page)["filter_chains"].append(chain)

    assert list(reported(changed(add))) == ["processor-filter"]


def test_names_of_filters_and_routes_do_not_matter() -> None:
    """Only what they do does."""

    def rename(page: Document) -> None:
        manager(page)["http_filters"][1]["name"] = "ask-the-router"
        for route in manager(page)["route_config"]["virtual_hosts"][0]["routes"]:
            route["name"] = "x"

    assert reported(changed(rename)) == {}


def test_own_routes_and_filters_may_come_first() -> None:
    """A login before ext_proc, and a route with a path of its own."""

    def add(page: Document) -> None:
        kind = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"
        manager(page)["http_filters"].insert(0, {"name": "login", "typed_config": {"@type": kind}})
        routes = manager(page)["route_config"]["virtual_hosts"][0]["routes"]
        routes.insert(0, {"name": "own", "match": {"prefix": "/own"}, "direct_response": {"status": 200}})

    assert reported(changed(add)) == {}


def test_endpoints_of_a_cluster_may_come_from_elsewhere() -> None:
    """Without ``load_assignment`` the hosts that Envoy has are compared."""

    def discover(page: Document) -> None:
        del cluster(page, "backend-a")["load_assignment"]

    assert reported(changed(discover)) == {"backend-clusters": ["cluster backend-a leads to nowhere"]}
    state = changed(discover)
    assert state.running is not None
    hosts = {**state.running.hosts, "backend-a": (Host("10.0.0.1:8000", True),)}
    assert reported(with_envoy(state, hosts=hosts)) == {}


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"configs": {}},
        {"configs": [None, 1, [], {"@type": 5}]},
        {"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "static_listeners": [{}, 3]}]},
        {"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "static_clusters": "x"}]},
    ],
    ids=["empty", "object", "odd-sections", "odd-listeners", "odd-clusters"],
)
def test_an_odd_dump_is_no_fault(page: Document) -> None:
    """Envoy has no listener then, which is what is reported."""
    found = reported(with_envoy(good(), wiring=from_dump(Node(page))))
    assert {"ingress-listener", "egress-listener", "backend-clusters"} <= set(found)


def test_addresses_are_shown_as_the_configuration_writes_them() -> None:
    """A socket, a port, and nothing for what is neither."""
    assert address_text(Node({"pipe": {"path": "/run/p.sock"}})) == "unix:/run/p.sock"
    assert address_text(Node({"socket_address": {"address": "h", "port_value": 1}})) == "h:1"
    assert address_text(Node({"envoy_internal_address": {}})) == ""
