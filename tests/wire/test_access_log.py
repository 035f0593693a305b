"""Access log entries over the wire: what is read of them, and that each exchange is settled once."""

from collections.abc import Mapping
from typing import Final

import pytest

from router_ext.model.outcome import AccessRecord, StreamEnd, Usage
from tests.fakes.wire_access_log import Entry, entry_of, send_access_log
from tests.fakes.wire_http import Outcome, Request
from tests.fakes.wire_stand import Stand
from tests.wire.modes import PRODUCT

FLAGS: Final = {
    "failed_local_healthcheck": "LH",
    "no_healthy_upstream": "UH",
    "upstream_request_timeout": "UT",
    "local_reset": "LR",
    "upstream_remote_reset": "UR",
    "upstream_connection_failure": "UF",
    "upstream_connection_termination": "UC",
    "upstream_overflow": "UO",
    "no_route_found": "NR",
    "delay_injected": "DI",
    "fault_injected": "FI",
    "rate_limited": "RL",
    "unauthorized_details": "UAEX",
    "rate_limit_service_error": "RLSE",
    "downstream_connection_termination": "DC",
    "upstream_retry_limit_exceeded": "URX",
    "stream_idle_timeout": "SI",
    "invalid_envoy_request_headers": "IH",
    "downstream_protocol_error": "DPE",
    "upstream_max_stream_duration_reached": "UMSDR",
    "response_from_cache_filter": "RFCF",
    "no_filter_config_found": "NFCF",
    "duration_timeout": "DT",
    "upstream_protocol_error": "UPE",
    "no_cluster_found": "NC",
    "overload_manager": "OM",
    "dns_resolution_failure": "DF",
    "downstream_remote_reset": "DR",
}


def routed(stand: Stand) -> Outcome:
    """One routed exchange, not settled yet."""
    return stand.run(stand.envoy(PRODUCT).exchange(Request((b'{"model":"m"}',))))


def settled(stand: Stand, *entries: Entry) -> list[AccessRecord]:
    """The records of the exchanges that these entries settle."""
    stand.run(send_access_log(stand.channel, entries))
    assert stand.kept.faults == []
    return [end.record for end in stand.kept.ends]


def test_an_entry_is_read_in_full(stand: Stand) -> None:
    """Times in seconds, sizes in bytes, the rest as Envoy writes it."""
    outcome = routed(stand)
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "stream_end": "whole"}
    entry = Entry(
        {**outcome.metadata, "router_ext.usage": usage},
        status=502,
        route="routed",
        cluster="backend-alpha",
        details="upstream_reset",
        flags=("upstream_connection_termination", "upstream_retry_limit_exceeded"),
        duration_s=12.5,
        last_upstream_byte_s=0.75,
        request_bytes=13,
        response_bytes=4096,
    )
    assert settled(stand, entry) == [
        AccessRecord(
            decision_id=outcome.decision_id,
            route="routed",
            cluster="backend-alpha",
            status=502,
            details="upstream_reset",
            upstream_reached=True,
            flags=("UC", "URX"),
            duration_s=12.5,
            last_upstream_byte_s=0.75,
            request_bytes=13,
            response_bytes=4096,
            usage=Usage(11, 7),
            stream_end=StreamEnd.WHOLE,
        )
    ]


def test_what_an_entry_leaves_out_reads_as_nothing(stand: Stand) -> None:
    """A client that left before any response: status 0, no upstream, no times, no usage."""
    outcome = routed(stand)
    entry = Entry(outcome.metadata, status=None, reached=False, details="", last_upstream_byte_s=None)
    (record,) = settled(stand, entry)
    assert (record.status, record.upstream_reached, record.last_upstream_byte_s) == (0, False, None)
    assert (record.flags, record.usage, record.stream_end) == ((), None, StreamEnd.UNKNOWN)


@pytest.mark.parametrize("field", FLAGS)
def test_each_flag_has_its_short_name(stand: Stand, field: str) -> None:
    """The names of Envoy's documentation."""
    (record,) = settled(stand, Entry(routed(stand).metadata, flags=(field,)))
    assert record.flags == (FLAGS[field],)


@pytest.mark.parametrize(
    ("metadata", "usage"),
    [
        ({"prompt_tokens": 11, "completion_tokens": 7, "cached_tokens": 5}, Usage(11, 7, 5)),
        ({"prompt_tokens": 3}, Usage(3)),
        ({"prompt_tokens": 1, "completion_tokens": 7, "cache_read_tokens": 31}, Usage(32, 7, 31)),
        ({"prompt_tokens": 1, "cache_read_tokens": 0, "cache_written_tokens": 40}, Usage(41, 0, 0)),
        ({"prompt_tokens": "many", "completion_tokens": None}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": float("inf")}, Usage()),
        ({"prompt_tokens": float("nan"), "completion_tokens": 2.0**53}, Usage(0, 9_007_199_254_740_992)),
        ({"prompt_tokens": 3, "stream_end": "error"}, Usage(3)),
        ({"stream_end": "whole"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_usage_is_read_from_dynamic_metadata(stand: Stand, metadata: Mapping[str, object], usage: Usage | None) -> None:
    """Whole numbers; what an engine cannot have meant counts as 0 and breaks nothing. No count at all is no usage."""
    (record,) = settled(stand, entry_of(routed(stand), usage=metadata))
    assert record.usage == usage


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("whole", StreamEnd.WHOLE),
        ("error", StreamEnd.ERROR),
        ("truncated", StreamEnd.TRUNCATED),
        ("", StreamEnd.UNKNOWN),
        ("Whole", StreamEnd.UNKNOWN),
        ("paused", StreamEnd.UNKNOWN),
        (1, StreamEnd.UNKNOWN),
        (None, StreamEnd.UNKNOWN),
    ],
)
def test_the_end_of_a_stream_is_read_from_dynamic_metadata(stand: Stand, said: object, end: StreamEnd) -> None:
    """What is no known end is unknown."""
    (record,) = settled(stand, entry_of(routed(stand), usage={"stream_end": said}))
    assert record.stream_end is end


def test_an_exchange_is_settled_once(stand: Stand) -> None:
    """The same entry twice, in one stream and in another: one settlement, and the count stays at 0."""
    entry = entry_of(routed(stand))
    assert stand.in_flight == 1
    assert len(settled(stand, entry, entry)) == 1
    assert len(settled(stand, entry)) == 1
    assert stand.in_flight == 0


def test_an_entry_after_reconciliation_still_settles(stand: Stand) -> None:
    """Given up is not forgotten: a late entry brings usage and status, and the count does not fall below 0."""
    entry = entry_of(routed(stand))
    stand.lose_open_exchanges()
    assert stand.in_flight == 0
    assert len(settled(stand, entry)) == 1
    assert stand.in_flight == 0


def test_an_entry_of_another_process_settles_nothing(stand: Stand) -> None:
    """Ids of before a restart are not ours."""
    routed(stand)
    assert settled(stand, Entry({"router_ext": {"id": "before-1"}})) == []
    assert stand.in_flight == 1
    assert stand.kept.bypasses == []


@pytest.mark.parametrize(
    ("entry", "bypassed"),
    [
        (Entry(route="fail-open"), 1),
        (Entry(route="fail-open", reached=False, status=503), 0),
        (Entry(route="session-needs-router", reached=False, status=503), 1),
        (Entry(route="", reached=False, status=None), 0),
        (Entry({"router_ext": {"id": ""}}), 1),
        (Entry({"other": {"id": "x"}}), 1),
        (Entry({"router_ext": {"id": 7}}), 1),
    ],
)
def test_an_entry_without_a_decision_is_a_bypass_if_something_was_served(
    stand: Stand, entry: Entry, bypassed: int
) -> None:
    """An upstream was reached, or a session request found no router; refusals of our own and aborts are neither."""
    assert settled(stand, entry) == []
    assert len(stand.kept.bypasses) == bypassed


def test_a_refused_request_is_no_bypass(stand: Stand) -> None:
    """The entry of an immediate response has no decision and reached nobody."""
    outcome = stand.run(stand.envoy(PRODUCT).exchange(Request((b"{",))))
    assert settled(stand, entry_of(outcome)) == []
    assert stand.kept.bypasses == []
