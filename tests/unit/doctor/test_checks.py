"""Each check on both sides of its limit, where it needs no real Envoy."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.doctor.catalogue import CHECKS
from router_ext.doctor.state import Counters, Host, RunningBackend, State, Unreadable
from tests.unit.doctor.states import (
    CONFIG,
    Document,
    changed,
    cluster,
    good,
    listener,
    manager,
    reported,
    skipped,
    wiring,
    with_envoy,
    with_router,
)

EXT_PROC = "http.ingress.ext_proc."
WORKERS = replace(CONFIG, server=replace(CONFIG.server, workers=2))


def test_all_is_well() -> None:
    """Nothing is reported, nothing is left out."""
    assert (reported(good()), skipped(good())) == ({}, set())


def test_ids_are_unique_and_readable() -> None:
    """Scripts select by them."""
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(word.isalpha() and word.islower() for name in ids for word in name.split("-"))


def test_an_envoy_that_is_away_is_one_finding() -> None:
    """What would be looked at in it is skipped; what the router says is still looked at."""
    state = replace(good(), envoy=Unreadable("http://127.0.0.1:8053", "Connection refused"))
    assert list(reported(state)) == ["envoy-admin"]
    looked_at = {"envoy-admin", "router-admin", "router-version", "router-config", "clock-skew", "backends"}
    assert skipped(state) == {check.id for check in CHECKS} - looked_at


def test_a_router_that_is_away_is_one_finding() -> None:
    """What Envoy says is still looked at."""
    state = replace(good(), router=Unreadable("http://127.0.0.1:8052", "Connection refused"))
    assert list(reported(state)) == ["router-admin"]
    assert skipped(state) == {"router-version", "router-config", "stray-clusters", "backends"}


def test_both_may_be_away() -> None:
    """Two findings, no fault."""
    away = Unreadable("http://h", "x")
    assert list(reported(replace(good(), envoy=away, router=away))) == ["envoy-admin", "router-admin"]


def test_settings_of_a_missing_filter_are_not_reported_as_well() -> None:
    """One cause, one finding."""

    def remove(page: Document) -> None:
        del manager(page)["http_filters"][1]

    assert list(reported(changed(remove))) == ["processor-filter"]
    assert {"filter-order", "body-modes", "failure-mode", "message-timeouts", "processor-rights"} == skipped(
        changed(remove)
    )


@pytest.mark.parametrize(
    ("version", "fits"),
    [("1.40.0", True), ("1.41.0-dev", True), ("2.0", True), ("1.39.9", False), ("", False), ("x.y", False)],
)
def test_envoy_is_not_older_than_what_was_measured(version: str, fits: bool) -> None:
    """1.40 and later."""
    assert ("envoy-version" not in reported(with_envoy(good(), version=version))) is fits


def test_an_envoy_that_drains_is_not_live() -> None:
    """Its state is told."""
    assert reported(with_envoy(good(), state="DRAINING"))["envoy-admin"] == ["Envoy is DRAINING, not LIVE"]


@pytest.mark.parametrize(("ahead_s", "fits"), [(5.0, True), (-5.0, True), (5.1, False), (-5.1, False), (None, True)])
def test_clocks_may_be_five_seconds_apart(ahead_s: float | None, fits: bool) -> None:
    """In both directions, for each side."""
    for state in (with_envoy(good(), ahead_s=ahead_s), with_router(good(), ahead_s=ahead_s)):
        assert ("clock-skew" not in reported(state)) is fits


def test_a_router_that_is_not_ready_or_of_another_version_is_said() -> None:
    """Two checks."""
    assert list(reported(with_router(good(), ready=False))) == ["router-admin"]
    assert reported(with_router(good(), version="2"))["router-version"] == [
        "the router that runs is version 2, this program is 1"
    ]


def test_a_refused_reload_and_a_backend_that_the_router_does_not_know_are_said() -> None:
    """The router runs another file then."""
    refused = Counters({}, {"kronaxis_router_config_last_reload_success": 0.0}, 2.0)
    assert list(reported(with_router(good(), counters=refused))) == ["router-config"]
    one = (RunningBackend("a", "healthy", False),)
    assert reported(with_router(good(), backends=one))["router-config"] == [
        "the router does not know these backends of the file: b, c"
    ]


@pytest.mark.parametrize(("health", "circuit_open"), [("down", False), ("healthy", True)])
def test_a_backend_that_takes_no_requests_is_a_warning(health: str, circuit_open: bool) -> None:
    """Its name is told."""
    backends = (RunningBackend("a", health, circuit_open), RunningBackend("b", "unknown", False))
    assert [wrong.split(" is ")[0] for wrong in reported(with_router(good(), backends=backends))["backends"]] == [
        "backend a"
    ]


def test_a_backend_that_was_added_at_run_time_is_no_stray() -> None:
    """The router knows it, the file does not."""

    def add(page: Document) -> None:
        page["configs"][1]["dynamic_active_clusters"].append({"cluster": {"name": "backend-new"}})

    assert list(reported(changed(add))) == ["stray-clusters"]
    known = (*(RunningBackend(name, "healthy", False) for name in ("a", "b", "c", "new")),)
    assert reported(with_router(changed(add), backends=known)) == {}


def test_a_worker_whose_health_check_fails_is_named() -> None:
    """Each endpoint counts."""
    hosts = (Host("unix:/run/p-0.sock", True), Host("unix:/run/p-1.sock", False))
    found = reported(with_envoy(good(WORKERS), hosts={"router-ext": hosts}))
    assert found == {
        "processor-health": ["Envoy's health check of the router at unix:/run/p-1.sock fails: requests pass it by"]
    }


def test_an_envoy_of_one_worker_does_not_fit_two() -> None:
    """The files were rendered for another number of processes."""
    state = replace(with_envoy(good(WORKERS), wiring=wiring()), config=WORKERS)
    assert {"processor-cluster", "access-log"} == set(reported(state))


@pytest.mark.parametrize("name", ["streams_failed", "message_timeouts", "failure_mode_allowed"])
def test_streams_that_fail_while_doctor_watches_are_an_error(name: str) -> None:
    """What failed before does not count here."""
    old = {f"{EXT_PROC}{name}": 3.0, f"{EXT_PROC}streams_started": 1000.0}
    assert reported(with_envoy(good(), counters=Counters(old, old, 2.0))) == {}
    new = {**old, f"{EXT_PROC}{name}": 4.0}
    assert reported(with_envoy(good(), counters=Counters(old, new, 2.0)))["failing-open"] == [
        f"streams to the router fail right now, within 2 s: {name} +1"
    ]


def test_requests_that_the_router_counts_as_bypassed_are_an_error() -> None:
    """Envoy may not have said why."""
    counters = Counters({}, {"kronaxis_router_bypassed_total": 1.0}, 2.0)
    assert list(reported(with_router(good(), counters=counters))) == ["failing-open"]


@pytest.mark.parametrize(("opened", "fits"), [(99.0, True), (98.0, False), (0.0, False)])
def test_one_request_in_a_hundred_may_have_passed_by(opened: float, fits: bool) -> None:
    """Since Envoy started."""
    counts = {f"{EXT_PROC}failure_mode_allowed": 1.0, f"{EXT_PROC}streams_started": opened}
    state = with_envoy(good(), counters=Counters(counts, counts, 2.0))
    assert ("failed-open" not in reported(state)) is fits


def test_access_log_entries_that_do_not_arrive_are_an_error() -> None:
    """Dropped now, or none delivered at all."""
    log = "access_logs.grpc_access_log."
    never = {f"{log}logs_written": 5.0, f"{log}grpc_entries_flushed": 0.0}
    assert list(reported(with_envoy(good(), counters=Counters(never, never, 2.0)))) == ["access-log-delivery"]
    fine = {**never, f"{log}grpc_entries_flushed": 4.0, f"{log}logs_dropped": 1.0}
    assert reported(with_envoy(good(), counters=Counters(fine, fine, 2.0))) == {}
    worse = {**fine, f"{log}logs_dropped": 2.0}
    assert list(reported(with_envoy(good(), counters=Counters(fine, worse, 2.0)))) == ["access-log-delivery"]


def _without_h2(page: Document) -> None:
    del cluster(page, "router-ext")["typed_extension_protocol_options"]


def _elsewhere(page: Document) -> None:
    endpoint = cluster(page, "router-ext")["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"] = {"pipe": {"path": "/run/other.sock"}}


def _with_tls(page: Document) -> None:
    cluster(page, "backend-a")["transport_socket"] = {"name": "tls"}


def _certificate_check(page: Document) -> Document:
    context = cluster(page, "backend-c")["transport_socket"]["typed_config"]["common_tls_context"]
    found: Document = context["validation_context"]
    return found


def _unchecked(page: Document) -> None:
    del _certificate_check(page)["trusted_ca"]


def _any_name(page: Document) -> None:
    del _certificate_check(page)["match_typed_subject_alt_names"]


def _own_trust(page: Document) -> None:
    _certificate_check(page)["trusted_ca"] = {"filename": "/etc/own.pem"}


def _plain_text(page: Document) -> None:
    del cluster(page, "backend-c")["transport_socket"]


def _own_processor(page: Document) -> None:
    service = {"envoy_grpc": {"cluster_name": "guard"}}
    kind = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
    manager(page)["http_filters"].insert(0, {"name": "guard", "typed_config": {"@type": kind, "grpc_service": service}})


def _own_forwarding_route(page: Document) -> None:
    routes = manager(page)["route_config"]["virtual_hosts"][0]["routes"]
    routes.insert(0, {"match": {"prefix": "/site"}, "route": {"cluster": "site"}})


def _unlimited_http2(page: Document) -> None:
    del manager(page)["route_config"]["virtual_hosts"][0]["request_body_buffer_limit"]


def _small_cluster(page: Document) -> None:
    del cluster(page, "backend-a")["per_connection_buffer_limit_bytes"]


def _another_port(page: Document) -> None:
    listener(page)["address"]["socket_address"]["port_value"] = 80


def _other_egress_routes(page: Document) -> None:
    chain = listener(page, 1)["filter_chains"][0]["filters"][0]["typed_config"]
    chain["route_config"]["virtual_hosts"][0]["routes"] = []


def _open_admin(page: Document) -> None:
    page["configs"][0]["bootstrap"]["admin"]["address"]["socket_address"]["address"] = "0.0.0.0"


def _another_processor(page: Document) -> None:
    service = manager(page)["http_filters"][1]["typed_config"]["grpc_service"]
    service["envoy_grpc"]["cluster_name"] = "other"


def _asked_twice(page: Document) -> None:
    filters = manager(page)["http_filters"]
    filters.insert(2, filters[1])


def _no_framer(page: Document) -> None:
    del manager(page)["http_filters"][0]


def _other_script(page: Document) -> None:
    manager(page)["http_filters"][2]["typed_config"]["default_source_code"] = {"inline_string": "-- none"}


def _no_overrides(page: Document) -> None:
    del manager(page)["http_filters"][1]["typed_config"]["allow_mode_override"]


def _observing(page: Document) -> None:
    manager(page)["http_filters"][1]["typed_config"]["observability_mode"] = True


def _switched_off(page: Document) -> None:
    kind = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute"
    host = manager(page)["route_config"]["virtual_hosts"][0]
    host["typed_per_filter_config"] = {"any-name": {"@type": kind, "disabled": True}}


def _sessions_first(page: Document) -> None:
    routes = manager(page)["route_config"]["virtual_hosts"][0]["routes"]
    routes.insert(0, routes.pop(2))


def _relayed_behind_routed(page: Document) -> None:
    routes = manager(page)["route_config"]["virtual_hosts"][0]["routes"]
    routes[0], routes[1] = routes[1], routes[0]


def _sessions_fail_open(page: Document) -> None:
    for route in manager(page)["route_config"]["virtual_hosts"][0]["routes"]:
        if route["name"] == "session-needs-router":
            del route["typed_per_filter_config"]


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        (_without_h2, {"processor-cluster"}),
        (_elsewhere, {"processor-cluster"}),
        (_with_tls, {"backend-clusters"}),
        (_plain_text, {"backend-clusters"}),
        (_unchecked, {"backend-clusters"}),
        (_any_name, {"backend-clusters"}),
        (_own_trust, set()),
        (_own_processor, set()),
        (_own_forwarding_route, set()),
        (_unlimited_http2, {"body-limits"}),
        (_small_cluster, {"body-limits"}),
        (_another_port, {"ingress-listener"}),
        (_other_egress_routes, {"egress-listener"}),
        (_open_admin, {"loopback-only"}),
        (_another_processor, {"processor-filter"}),
        (_asked_twice, {"processor-filter"}),
        (_no_framer, {"filter-order"}),
        (_other_script, {"filter-order"}),
        (_no_overrides, {"body-modes"}),
        (_observing, {"processor-rights"}),
        (_switched_off, {"routes"}),
        (_sessions_first, {"routes"}),
        (_relayed_behind_routed, {"routes"}),
        (_sessions_fail_open, {"session-routes"}),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_change_by_hand_is_reported_by_the_check_that_is_for_it(
    change: Callable[[Document], None], checks: set[str]
) -> None:
    """And by no other; what is the operator's own is reported by none."""
    assert set(reported(changed(change))) == checks


@pytest.mark.parametrize(("limit", "fits"), [(64, True), (63, False)])
def test_breakers_of_a_backend_let_max_concurrent_through(limit: int, fits: bool) -> None:
    """64 is what the backend may have in flight."""

    def set_limit(page: Document) -> None:
        cluster(page, "backend-a")["circuit_breakers"]["thresholds"][0]["max_requests"] = limit

    assert ("breakers" not in reported(changed(set_limit))) is fits


@pytest.mark.parametrize("config", [CONFIG, WORKERS], ids=["one", "two-workers"])
def test_what_is_rendered_is_right(config: RouterConfig) -> None:
    """For one process and for several."""
    state: State = good(config)
    assert reported(state) == {}
