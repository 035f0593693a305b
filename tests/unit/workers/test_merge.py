"""One answer out of those of all workers."""

from typing import Any

from router_ext.workers.merge import merged_decisions, merged_gauges, merged_health


def backend(name: str, health: str, *, tripped: bool = False, active: int = 0) -> dict[str, Any]:
    """A backend as a worker tells of it."""
    return {"name": name, "health": health, "circuit_open": tripped, "active_requests": active}


def health(status: str, *backends: dict[str, Any]) -> dict[str, Any]:
    """A worker's answer."""
    return {"status": status, "backends": list(backends)}


def test_a_backend_is_as_well_as_the_worker_says_that_thinks_worst_of_it() -> None:
    """An operator looks for what is wrong; requests are counted by every worker for all of them."""
    merged = merged_health(
        [
            health("ok", backend("a", "healthy", active=3), backend("b", "degraded")),
            health("ok", backend("a", "down", tripped=True, active=4), backend("b", "healthy", active=1)),
        ]
    )
    assert merged["backends"] == [backend("a", "down", tripped=True, active=4), backend("b", "degraded", active=1)]


def test_the_router_is_well_while_one_worker_has_a_backend() -> None:
    """Without a worker that answers it says so."""
    assert merged_health([health("no_backend"), health("ok")])["status"] == "ok"
    assert merged_health([health("no_backend"), health("no_backend")])["status"] == "no_backend"
    assert merged_health([])["status"] == "no_worker"


def test_a_backend_that_one_worker_does_not_know_yet_is_shown() -> None:
    """A reload reaches the workers one after the other."""
    merged = merged_health([health("ok"), health("ok", backend("new", "down"))])
    assert merged["backends"] == [backend("new", "down")]


def test_decisions_are_the_newest_of_all_workers_in_order() -> None:
    """Each worker tells its own newest first; what is older than the limit allows is left out."""
    one = [{"id": "w0-2", "time": "2026-01-01T00:00:03Z"}, {"id": "w0-1", "time": "2026-01-01T00:00:01Z"}]
    other = [{"id": "w1-1", "time": "2026-01-01T00:00:02Z"}]
    assert [item["id"] for item in merged_decisions([one, other, []], 2)] == ["w0-2", "w1-1"]
    assert [item["id"] for item in merged_decisions([one, other], 9)] == ["w0-2", "w1-1", "w0-1"]


def test_the_precision_of_a_time_does_not_change_the_order() -> None:
    """A JSON timestamp has no fraction, or three, six or nine digits of it."""
    one = [{"id": "late", "time": "2026-01-01T00:00:01.500Z"}]
    other = [{"id": "early", "time": "2026-01-01T00:00:01Z"}]
    assert [item["id"] for item in merged_decisions([other, one], 9)] == ["late", "early"]


PAGE = """\
# HELP kronaxis_router_backend_active_requests Requests.
# TYPE kronaxis_router_backend_active_requests gauge
kronaxis_router_backend_active_requests{{backend="a"}} {active}
# HELP kronaxis_router_backend_healthy Well.
# TYPE kronaxis_router_backend_healthy gauge
kronaxis_router_backend_healthy{{backend="a"}} {well}
# HELP kronaxis_router_kv_pin_entries Prefixes.
# TYPE kronaxis_router_kv_pin_entries gauge
kronaxis_router_kv_pin_entries {pins}
"""


def test_requests_are_added_health_is_the_worst_and_all_else_the_highest() -> None:
    """Each worker counts its own open requests; pins are told to all, so that their sum would count one many times."""
    families = merged_gauges([PAGE.format(active=2, well=1, pins=7), PAGE.format(active=3, well=0, pins=9)])
    values = {sample.name: (sample.labels, sample.value) for family in families for sample in family.samples}
    assert values == {
        "kronaxis_router_backend_active_requests": ({"backend": "a"}, 5.0),
        "kronaxis_router_backend_healthy": ({"backend": "a"}, 0.0),
        "kronaxis_router_kv_pin_entries": ({}, 9.0),
    }


def test_a_series_of_one_worker_alone_stays_as_it_is() -> None:
    """A backend without samples of its own time to first token, say."""
    more = PAGE.format(active=1, well=1, pins=0).replace('backend="a"', 'backend="b"')
    families = merged_gauges([PAGE.format(active=2, well=1, pins=7), more])
    active = next(family for family in families if family.name == "kronaxis_router_backend_active_requests")
    assert [(sample.labels, sample.value) for sample in active.samples] == [
        ({"backend": "a"}, 2),
        ({"backend": "b"}, 1),
    ]


def test_no_page_gives_no_family() -> None:
    """While every worker is away."""
    assert merged_gauges([]) == []
