"""What becomes a sample, and what a line."""

import pytest

from router_ext.health.failures import failure_of
from router_ext.model.decision import Decision
from router_ext.model.experiment import Assignment
from router_ext.model.gate import Quality, SchemaVerdict
from router_ext.model.money import FALLBACK, PROXIED
from router_ext.model.outcome import AccessRecord, Outcome, Usage
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.snapshot import Health
from tests.fakes.domain import CHAT, record
from tests.fakes.recorder import RecorderRig


def _decision(service: str = "shop") -> Decision:
    request = InferenceRequest(CHAT, Caller(service), "m-a", stream=True)
    return Decision("t-1", 0.0, request, "r", "a", "m-a", ())


def _outcome(record: AccessRecord, ttft_s: float | None = 0.25, attempts: int = 1) -> Outcome:
    """The outcome of a request whose answer Envoy passed on."""
    return Outcome(record, failure_of(record), ttft_s, record.usage, attempts)


@pytest.mark.parametrize(("service", "label"), [("shop", "shop"), ("", "other"), ("Shop", "other"), ("x", "other")])
def test_a_service_has_its_own_label_only_when_it_is_configured(service: str, label: str) -> None:
    """Every other name is ``other``."""
    rig = RecorderRig()
    rig.recorder.routed(_decision(service))
    rig.recorder.refused(Caller(service), Rejection(Reason.INVALID_JSON, "?"))
    assert rig.series("requests_total") == {("a", "r", label): 1.0}
    assert rig.series("errors_total") == {("", "invalid_json", label): 1.0}


def test_a_new_configuration_names_other_services() -> None:
    """From then on."""
    rig = RecorderRig()
    rig.recorder.routed(_decision("cart"))
    rig.recorder.named_services = frozenset({"cart"})
    rig.recorder.routed(_decision("cart"))
    assert rig.series("requests_total") == {("a", "r", "other"): 1.0, ("a", "r", "cart"): 1.0}


def test_a_good_exchange_gives_times() -> None:
    """And no error."""
    rig = RecorderRig()
    rig.recorder.settled(_decision(), _outcome(record("t-1")))
    assert rig.series("request_duration_seconds_sum") == {("a", "shop"): 2.0}
    assert rig.series("ttft_seconds_sum") == {("a",): 0.25}
    assert rig.series("errors_total") == {}


def test_a_failed_exchange_gives_an_error_and_no_time_to_first_token() -> None:
    """An answer of 400 gives neither."""
    rig = RecorderRig()
    rig.recorder.settled(_decision(), _outcome(record("t-1", flags=("UC",), usage=None)))
    rig.recorder.settled(_decision(), _outcome(record("t-2", 400, usage=None)))
    assert rig.series("errors_total") == {("a", "upstream_cut", "shop"): 1.0}
    assert sum(rig.series("ttft_seconds_count").values()) == 0
    assert rig.series("request_duration_seconds_count") == {("a", "shop"): 2.0}


def test_tokens_are_counted_by_backend_and_direction() -> None:
    """An engine may report what it likes: less than none is none."""
    rig = RecorderRig()
    rig.recorder.charged(Caller("shop"), "a", PROXIED, Usage(9, 1), 0)
    rig.recorder.charged(Caller("shop"), "b", PROXIED, Usage(-5, 3), 0)
    assert rig.series("tokens_total") == {
        ("a", "prompt"): 9.0,
        ("a", "completion"): 1.0,
        ("b", "prompt"): 0.0,
        ("b", "completion"): 3.0,
    }


def test_calls_whose_tokens_are_estimated_are_counted_and_marked() -> None:
    """By backend; the line of an exchange with exact tokens has no such field."""
    rig = RecorderRig()
    rig.recorder.usage_estimated("b")
    assert rig.series("usage_estimated_total") == {("b",): 1.0}
    for estimated in (False, True):
        rig.recorder.settled(_decision(), Outcome(record("t-1"), None, None, Usage(9, 1), estimated=estimated))
    assert [line.get("usage_estimated") for line in rig.lines()] == [None, True]


def test_costs_are_counted_in_dollars_by_service_backend_and_kind() -> None:
    """Two calls of $1.25 and $0.000001; one without a cost shows its series, and a service without a name is other."""
    rig = RecorderRig()
    for service, micro_usd in (("shop", 1_250_000), ("shop", 1), ("cart", 0)):
        rig.recorder.charged(Caller(service), "a", PROXIED, Usage(0, 0), micro_usd)
    assert rig.series("cost_usd_total") == {("a", "proxied", "shop"): 1.250001, ("a", "proxied", "other"): 0.0}


def test_an_exchange_is_one_line_of_known_fields() -> None:
    """Names, numbers and flags: no body, no header but the service, no credential."""
    rig = RecorderRig()
    rig.recorder.settled(_decision(), _outcome(record("t-1", flags=("UC",)), attempts=2))
    assert rig.lines() == [
        {
            "level": "info",
            "event": "exchange",
            "id": "t-1",
            "service": "shop",
            "rule": "r",
            "backend": "a",
            "attempts": 2,
            "path": "/v1/chat/completions",
            "model": "m-a",
            "stream": True,
            "status": 200,
            "flags": ("UC",),
            "failure": "upstream_cut",
            "duration_ms": 2000.0,
            "ttft_ms": 250.0,
            "prompt_tokens": 9,
            "completion_tokens": 1,
        }
    ]


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        (None, {}),
        (Assignment("cheaper", "b", "a", "x"), {"ab_test": "cheaper", "ab_variant": "b", "ab_fallback": False}),
        (Assignment("cheaper", "a", "x", "a", True), {"ab_test": "cheaper", "ab_variant": "a", "ab_fallback": True}),
        (Assignment("cheaper", "a", "x", "a"), {"ab_test": "cheaper", "ab_variant": "a", "ab_fallback": True}),
    ],
)
def test_the_line_of_an_exchange_names_its_test_and_variant(
    assignment: Assignment | None, told: dict[str, object]
) -> None:
    """Where there is one, with whether another backend than the variant's answered."""
    rig, entry = RecorderRig(), record("t-1")
    rig.recorder.settled(_decision(), Outcome(entry, None, None, None, 1, assignment))
    (line,) = rig.lines()
    assert {name: value for name, value in line.items() if name.startswith("ab_")} == told


def test_requests_of_tests_are_counted_by_variant() -> None:
    """Those that a variant could not take apart from its own."""
    rig = RecorderRig()
    for variant, fell_back in (("a", False), ("a", False), ("b", False), ("b", True)):
        rig.recorder.ab_request("cheaper", variant, fell_back=fell_back)
    assert rig.series("ab_requests_total") == {("cheaper", "a"): 2.0, ("cheaper", "b"): 1.0}
    assert rig.series("ab_fallbacks_total") == {("cheaper", "b"): 1.0}


def test_a_refusal_is_logged_without_its_message() -> None:
    """Reason, status and field are enough."""
    rig = RecorderRig()
    rig.recorder.refused(Caller(), Rejection(Reason.INVALID_MODEL, "secret", "model"))
    assert rig.lines() == [
        {"level": "info", "event": "refused", "reason": "invalid_model", "status": 400, "param": "model"}
    ]


def test_trouble_is_counted_and_logged() -> None:
    """Lost entries, requests past the router and bugs."""
    rig, error = RecorderRig(), ValueError("x")
    rig.recorder.lost(_decision())
    rig.recorder.bypassed(record("", route="fail-open"))
    rig.recorder.bypassed(record("", route=""))
    rig.recorder.fault("ext_proc", error)
    rig.recorder.headers_only()
    assert rig.series("access_log_lost_total") == {("a",): 1.0}
    assert rig.series("bypassed_total") == {("fail-open",): 1.0, ("other",): 1.0}
    assert rig.series("faults_total") == {("ext_proc",): 1.0}
    assert rig.series("headers_only_total") == {(): 1.0}
    assert [(line["level"], line["event"]) for line in rig.lines()] == [
        ("warning", "access_log_lost"),
        ("warning", "bypassed"),
        ("warning", "bypassed"),
        ("error", "fault"),
    ]


def test_the_last_reload_shows_in_a_gauge() -> None:
    """1 with its time after a success; 0 after a refusal, the time of the last success staying."""
    rig = RecorderRig()
    rig.recorder.reloaded("abc")
    assert rig.series("config_last_reload_success") == {(): 1.0}
    rig.recorder.reload_refused("router.yaml:1: wrong")
    assert rig.series("config_last_reload_success") == {(): 0.0}
    assert rig.series("config_last_reload_success_timestamp_seconds") == {(): 1_700_000_000.0}


def test_changes_that_are_not_in_force_show_in_a_gauge() -> None:
    """0 after a refusal, 1 before it and after the next success; both are lines of the log."""
    rig = RecorderRig()
    assert rig.series("config_changes_in_force") == {(): 1.0}
    rig.recorder.changes_refused("changes.json: is broken")
    assert rig.series("config_changes_in_force") == {(): 0.0}
    rig.recorder.changes_taken_over()
    assert rig.series("config_changes_in_force") == {(): 1.0}
    assert [(line["level"], line["event"]) for line in rig.lines()] == [
        ("error", "changes_refused"),
        ("info", "changes_taken_over"),
    ]


def test_watchers_and_what_they_missed_are_counted() -> None:
    """Watchers as a gauge, what they did not hear of as a counter."""
    rig = RecorderRig()
    rig.recorder.watchers(2)
    rig.recorder.watchers(1)
    rig.recorder.watch_event_dropped()
    assert rig.series("decision_watchers") == {(): 1.0}
    assert rig.series("decision_events_dropped_total") == {(): 1.0}


def test_a_change_of_health_is_a_line() -> None:
    """With what the probe saw."""
    rig = RecorderRig()
    rig.recorder.health_changed("a", Health.DOWN, "unreachable")
    assert rig.lines() == [
        {"level": "info", "event": "health", "backend": "a", "health": "down", "cause": "unreachable"}
    ]


def test_sessions_are_counted_by_what_becomes_of_them() -> None:
    """Begun, continued with the tokens that were not sent again, destroyed by reason; the gauge is the last count."""
    rig = RecorderRig()
    rig.recorder.session_created()
    rig.recorder.session_hydrated(1200)
    rig.recorder.session_hydrated(300)
    for reason in ("ttl", "ttl", "deleted"):
        rig.recorder.session_evicted(reason)
    rig.recorder.turn_not_saved("client_left")
    rig.recorder.sessions_active(5)
    rig.recorder.sessions_active(4)
    assert rig.series("session_creations_total") == {(): 1.0}
    assert rig.series("session_hydrations_total") == {(): 2.0}
    assert rig.series("session_tokens_saved_total") == {(): 1500.0}
    assert rig.series("session_evictions_total") == {("ttl",): 2.0, ("deleted",): 1.0}
    assert rig.series("session_turns_not_saved_total") == {("client_left",): 1.0}
    assert rig.series("sessions_active") == {(): 4.0}


def test_a_session_with_less_than_no_tokens_saves_none() -> None:
    """Token counts come from engines and stores."""
    rig = RecorderRig()
    rig.recorder.session_hydrated(-1)
    assert rig.series("session_hydrations_total") == {(): 1.0}
    assert rig.series("session_tokens_saved_total") == {(): 0.0}


def test_every_call_of_the_session_store_is_timed_and_only_failed_ones_are_errors() -> None:
    """By operation."""
    rig = RecorderRig()
    rig.recorder.session_store_call("load", 0.25, ok=True)
    rig.recorder.session_store_call("load", 0.5, ok=False)
    rig.recorder.session_store_call("list", 0.125, ok=True)
    assert rig.series("session_store_seconds_sum") == {("load",): 0.75, ("list",): 0.125}
    assert rig.series("session_store_seconds_count") == {("load",): 2.0, ("list",): 1.0}
    assert rig.series("session_store_errors_total") == {("load",): 1.0}


def test_what_the_gate_says_is_counted_by_result_and_reason() -> None:
    """A good answer has no reason."""
    rig = RecorderRig()
    rig.recorder.gate_concluded(Quality.PASSED, "")
    rig.recorder.gate_concluded(Quality.FALLBACK, "schema")
    rig.recorder.gate_concluded(Quality.FALLBACK, "schema")
    rig.recorder.gate_concluded(Quality.SKIPPED, "bad_schema")
    assert rig.series("quality_gate_total") == {
        ("", "passed"): 1.0,
        ("schema", "fallback"): 2.0,
        ("bad_schema", "skipped"): 1.0,
    }


def test_every_look_of_the_gate_is_timed() -> None:
    """Once an answer."""
    rig = RecorderRig()
    rig.recorder.gate_judged(0.25)
    rig.recorder.gate_judged(0.5)
    assert rig.series("quality_gate_seconds_sum") == {(): 0.75}
    assert rig.series("quality_gate_seconds_count") == {(): 2.0}


def test_only_answers_that_do_not_fit_are_failures_of_a_schema() -> None:
    """Or that are no JSON, or of which it was not known in time; a schema that is of no use is the request's fault."""
    rig = RecorderRig()
    for verdict in SchemaVerdict:
        rig.recorder.schema_validated(verdict)
    assert rig.series("schema_validations_total") == {(): 5.0}
    assert rig.series("schema_failures_total") == {(): 3.0}


def test_what_the_gate_costs_has_a_kind_of_its_own() -> None:
    """Beside that of the request itself; its tokens are the fallback's."""
    rig = RecorderRig()
    rig.recorder.charged(Caller("shop"), "a", PROXIED, Usage(8, 2), 10)
    rig.recorder.charged(Caller("shop"), "b", FALLBACK, Usage(8, 2), 1_000_000)
    assert rig.series("cost_usd_total") == {("a", "proxied", "shop"): 0.00001, ("b", "fallback", "shop"): 1.0}
    assert rig.series("tokens_total")[("b", "completion")] == 2.0
