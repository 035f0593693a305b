"""Pins in the engine: from the decision to the access log entry, and what makes them go."""

import dataclasses

import orjson

from router_ext.config.sections import KvPinning, RouterConfig, Server
from router_ext.health.load import QueueReading
from router_ext.model.affinity import Balancing
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig

DOCUMENT = "All work and no play makes a dull router. " * 300
"""12,600 bytes: six whole blocks."""


def rig(*backends: Backend, balancing: Balancing = Balancing.PIN) -> EngineRig:
    """An engine that pins, over two backends of one model unless others are given."""
    return EngineRig(pinning(*(backends or (backend("a"), backend("b", model="m-a"))), balancing=balancing))


def pinning(*backends: Backend, balancing: Balancing = Balancing.PIN) -> RouterConfig:
    """A configuration with pinning and queue-aware routing."""
    server = Server(kv_pinning=KvPinning(enabled=True), queue_aware_routing=True, balancing=balancing)
    return dataclasses.replace(router(*backends), server=server)


def chat(*turns: str, **fields: object) -> bytes:
    """A chat body of alternating turns, the user's first."""
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
    return orjson.dumps({"model": "m-a", "messages": messages, **fields})


def send(rig: EngineRig, body: bytes) -> tuple[str, str, str]:
    """Decision id, backend and pin header of one request."""
    plan = rig.forward(body)
    told = dict(plan.response_edits.set)
    return plan.metadata["id"], told["x-kronaxis-backend"], told["x-kronaxis-kv-pin"]


def serve(rig: EngineRig, body: bytes, status: int = 200, usage: Usage | None = None) -> tuple[str, str]:
    """Backend and pin header of one request that runs to its end."""
    decision_id, name, pin = send(rig, body)
    rig.engine.settle(record(decision_id, status, usage=usage))
    return name, pin


def test_the_second_turn_goes_where_the_first_one_went() -> None:
    """A growing conversation: MISS, then HIT on the same backend, although the other one is idle as well."""
    run = rig()
    first, pin = serve(run, chat(DOCUMENT))
    assert pin == "MISS"
    turns = [DOCUMENT]
    for number in range(2, 6):
        turns += [f"answer {number}", f"question {number}"]
        assert serve(run, chat(*turns)) == (first, "HIT")


def test_without_pinning_there_is_no_header() -> None:
    """The header is there only while pinning is enabled."""
    plan = EngineRig(router(backend("a"))).forward()
    assert "x-kronaxis-kv-pin" not in dict(plan.response_edits.set)


def test_a_turn_that_fails_leaves_no_pin() -> None:
    """A 5xx and a 4xx of the backend: the next request with that prefix is a miss."""
    for status in (503, 400):
        run = rig()
        serve(run, chat(DOCUMENT), status)
        assert serve(run, chat(DOCUMENT, "a", "b"))[1] == "MISS"


def test_a_short_single_message_has_no_prefix() -> None:
    """Nothing that could be shared: a miss, however often it comes."""
    run = rig()
    assert [serve(run, chat("hi"))[1] for _ in range(3)] == ["MISS"] * 3


def test_equal_text_in_another_role_and_other_tools_are_other_prefixes() -> None:
    """The chain covers roles and tools, in their order."""
    run = rig()
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    serve(run, chat(DOCUMENT, tools=tools))
    assert serve(run, chat(DOCUMENT, "a", "b", tools=tools[::-1]))[1] == "MISS"
    system = orjson.dumps({"model": "m-a", "messages": [{"role": "system", "content": DOCUMENT}, {"role": "user"}]})
    assert serve(run, system)[1] == "MISS"
    assert serve(run, chat(DOCUMENT, "a", "b", tools=tools))[1] == "HIT"


def test_two_different_images_are_two_prefixes() -> None:
    """Images count by their content."""

    def look(image: str) -> bytes:
        part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
        messages = [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}, {"role": "assistant"}]
        return orjson.dumps({"model": "m-a", "messages": [*messages, {"role": "user", "content": "more"}]})

    run = rig()
    serve(run, look("AAAA"))
    assert serve(run, look("BBBB"))[1] == "MISS"
    assert serve(run, look("AAAA"))[1] == "HIT"


def test_a_pinned_backend_that_is_down_full_or_gone_is_passed_over() -> None:
    """The other backend serves, as a miss."""
    small = backend("a", room=1), backend("b", model="m-a", room=1)
    for trouble in ("down", "full", "removed"):
        run = rig(*small)
        pinned, _ = serve(run, chat(DOCUMENT))
        other = "b" if pinned == "a" else "a"
        if trouble == "down":
            run.engine.set_health(pinned, Health.DOWN)
        elif trouble == "full":
            send(run, chat(DOCUMENT, "a", "b"))
        else:
            run.engine.configure(pinning(*(item for item in small if item.name == other)))
        assert send(run, chat(DOCUMENT, "a", "b"))[1:] == (other, "MISS")


def test_a_restart_seen_by_the_scraper_forgets_the_pins_of_that_backend() -> None:
    """The start time moved: its cache is empty."""
    run = rig()
    pinned, _ = serve(run, chat(DOCUMENT))
    run.engine.report(pinned, QueueReading(0, 0, start_time=1000.0), now=1.0)
    assert serve(run, chat(DOCUMENT, "a", "b"))[1] == "HIT"
    run.engine.report(pinned, QueueReading(0, 0, start_time=2000.0), now=2.0)
    assert serve(run, chat(DOCUMENT, "a", "b", "c", "d"))[1] == "MISS"


def test_a_backend_that_changes_its_model_or_its_address_is_forgotten() -> None:
    """The same name with another model behind it."""
    run = rig(backend("a"))
    serve(run, chat(DOCUMENT))
    run.engine.configure(pinning(backend("a", model="m-b")))
    assert serve(run, chat(DOCUMENT, "a", "b"))[1] == "MISS"


def test_only_engines_with_a_prefix_cache_of_their_own_are_pinned() -> None:
    """A cloud provider is never a hit."""
    run = rig(backend("a", engine=BackendType.OPENAI))
    serve(run, chat(DOCUMENT))
    assert serve(run, chat(DOCUMENT, "a", "b"))[1] == "MISS"


def test_load_beyond_the_router_counts_and_an_unknown_one_does_not() -> None:
    """A backend whose page shows a long queue is left; with the page gone its own requests are all that counts."""
    run = rig()
    run.engine.report("a", QueueReading(waiting=40, running=8), now=1.0)
    assert {send(run, chat("x", "y", str(i)))[1] for i in range(6)} == {"b"}
    run.engine.report("a", None, now=2.0)
    assert send(run, chat("x", "y", "z"))[1] == "a"


def test_the_predicted_and_the_reported_part_of_a_prompt_are_both_counted() -> None:
    """A miss that was expected, then a hit that the engine did not have, in its own tokens."""
    run = rig(backend("a"))
    serve(run, chat(DOCUMENT), usage=Usage(3000, 5, 0))
    assert serve(run, chat(DOCUMENT, "a", "b"), usage=Usage(3000, 5, 0))[1] == "HIT"
    assert run.telemetry.cache_reports[0] == ("a", 0, 0)
    name, predicted, cached = run.telemetry.cache_reports[1]
    assert (name, cached) == ("a", 0)
    assert 2900 < predicted <= 3000


def test_an_engine_that_reports_nothing_is_not_counted() -> None:
    """No figure is no zero."""
    run = rig(backend("a"))
    serve(run, chat(DOCUMENT), usage=Usage(3000, 5))
    assert run.telemetry.cache_reports == []


def test_a_request_that_ends_after_its_backend_moved_leaves_no_pin() -> None:
    """Under its name stands another address, or another model: that cache never saw the prompt."""
    elsewhere = backend("a", endpoint=Endpoint("http", "elsewhere", 8000))
    for replacement in (elsewhere, backend("a", model="m-b")):
        run = rig(backend("a"))
        decision_id, _, _ = send(run, chat(DOCUMENT, stream=True))
        run.engine.configure(pinning(replacement))
        run.heal()
        run.engine.first_token(decision_id)
        run.engine.settle(record(decision_id))
        assert serve(run, chat(DOCUMENT, "a", "b"))[1] == "MISS"


def test_an_exchange_whose_log_entry_is_lost_leaves_no_prefill_work() -> None:
    """What routing sees is what is left after the exchange was given up."""
    run = rig(backend("a"))
    send(run, chat(DOCUMENT, stream=True))
    assert run.engine.pool.snapshot()["a"].prefill.queued > 12_000
    for _ in range(10):
        run.clock.advance(1.0)
        run.engine.reconcile({"backend-a": 0})
    state = run.engine.pool.snapshot()["a"]
    assert (state.in_flight, state.prefill.queued) == (0, 0)


def test_a_burst_of_first_turns_does_not_land_on_one_backend() -> None:
    """Sixteen concurrent requests with one new prefix, under both policies."""
    for balancing in Balancing:
        run = rig(*(backend(name, model="m-a") for name in "abcd"), balancing=balancing)
        names = [send(run, chat(DOCUMENT, "a", str(i), stream=True))[1] for i in range(16)]
        assert max(names.count(name) for name in "abcd") <= 6


def test_predicted_ttft_learns_and_every_count_ends_at_zero() -> None:
    """Streams with first tokens teach the rate; when all have ended no prefill is left in any queue."""
    run = rig(balancing=Balancing.PREDICTED_TTFT)
    for turn in range(12):
        decision_id, _, _ = send(run, chat(f"{turn} " + DOCUMENT, stream=True))
        run.clock.advance(0.5)
        run.engine.first_token(decision_id)
        run.clock.advance(0.5)
        run.engine.settle(record(decision_id))
    states = run.engine.pool.snapshot().values()
    assert [(state.in_flight, state.prefill.queued) for state in states] == [(0, 0), (0, 0)]
    assert any(state.prefill.rate > 0 for state in states)
    assert serve(run, chat("11 " + DOCUMENT, "a", "b"))[1] == "HIT"


def test_pinning_can_be_switched_off_at_run_time() -> None:
    """No header any more."""
    run = rig()
    serve(run, chat(DOCUMENT))
    run.engine.configure(router(backend("a"), backend("b", model="m-a")))
    assert "x-kronaxis-kv-pin" not in dict(run.forward(chat(DOCUMENT), head()).response_edits.set)
