"""Times to the first token as live requests bring them, and the limit on them."""

from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.model.outcome import StreamEnd
from router_ext.model.rule import Rule
from router_ext.model.snapshot import NO_SAMPLES, TtftStats
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, record
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.relays import ROLE, STREAM, TOKEN, Acting, begun, relayed, settled, silent, trio


def _ruled(*backends: str, config: RouterConfig | None = None) -> RouterConfig:
    """Two backends under a rule that wants the first token within a second."""
    rule = Rule("fast", backends=backends or ("a", "b"), max_ttft_ms=1000)
    return replace(config or trio(backend("a"), backend("b")), rules=(rule,))


def _serve(rig: EngineRig, body: bytes, token_s: float | None, status: int = 200, **changes: object) -> None:
    """One request, whose first token comes after so many seconds."""
    decision_id = rig.forward(body).metadata["id"]
    if token_s is not None:
        rig.clock.advance(token_s)
        rig.engine.first_token(decision_id)
    rig.engine.settle(record(decision_id, status, **changes))


def _of(rig: EngineRig, name: str = "a") -> TtftStats:
    return rig.engine.pool[name].state.ttft


def test_a_streams_first_token_is_a_sample() -> None:
    """However long the answer goes on after it; without one there is none."""
    rig = EngineRig(trio())
    _serve(rig, STREAM, 0.25, last_upstream_byte_s=9.0)
    assert _of(rig) == TtftStats(1, rig.clock.now_s, 250.0, 250.0)
    _serve(rig, STREAM, None)
    assert _of(rig).samples == 1


def test_a_plain_answers_last_byte_is_a_sample() -> None:
    """Its client sees nothing before."""
    rig = EngineRig(trio())
    _serve(rig, BODY, None, last_upstream_byte_s=1.5)
    assert _of(rig) == TtftStats(1, rig.clock.now_s, 1500.0, 1500.0)
    _serve(rig, BODY, None, last_upstream_byte_s=None)
    assert _of(rig).samples == 1


@pytest.mark.parametrize(
    ("status", "changes", "samples"),
    [
        (200, {}, 1),
        (399, {}, 1),
        (400, {}, 0),
        (404, {}, 0),
        (429, {}, 0),
        (500, {}, 0),
        (0, {}, 0),
        (200, {"flags": ("DC",)}, 0),
        (200, {"flags": ("UC",)}, 0),
        (200, {"stream_end": StreamEnd.ERROR}, 0),
    ],
)
def test_only_good_answers_are_samples(status: int, changes: dict[str, object], samples: int) -> None:
    """An error is fast and says nothing of inference."""
    rig = EngineRig(trio())
    _serve(rig, BODY, None, status, **changes)
    assert _of(rig).samples == samples


async def test_a_move_brings_no_sample_but_for_silence() -> None:
    """A failing answer of the first backend, a good one of the second."""
    rig = EngineRig(silent(trio(), 0.01))
    rig.dispatcher.answer("a", None, event_stream(ROLE), event_stream(ROLE, hangs=True))
    fast = Acting(200, event_stream().headers, (TOKEN,), acts=lambda: rig.clock.advance(0.125))
    rig.dispatcher.answer("b", *[replace(fast) for _ in range(3)])
    for samples in (0, 0, 1):
        decision_id = await begun(rig, STREAM)
        await relayed(rig, decision_id)
        settled(rig, decision_id)
        assert _of(rig).samples == samples
    assert _of(rig, "b").samples == 0


async def test_a_relayed_stream_that_ends_well_is_a_sample() -> None:
    """From the start of its own attempt to its first token."""
    rig = EngineRig(silent(trio()))
    rig.dispatcher.answer("a", event_stream(TOKEN, b"data: [DONE]\n\n"))
    decision_id = await begun(rig, STREAM)
    rig.clock.advance(0.5)
    await relayed(rig, decision_id)
    rig.clock.advance(7)
    settled(rig, decision_id)
    assert _of(rig) == TtftStats(1, rig.clock.now_s, 500.0, 500.0)


def test_another_model_at_the_same_place_begins_anew() -> None:
    """Other settings do not matter."""
    rig = EngineRig(trio(backend("a")))
    _serve(rig, BODY, None)
    rig.engine.configure(trio(backend("a", room=9)))
    assert _of(rig).samples == 1
    rig.engine.configure(trio(backend("a", model="m-2")))
    assert _of(rig) == NO_SAMPLES


# The limit of a rule


def _slow(rig: EngineRig, samples: int, seconds: float = 1.25) -> None:
    """So many answers of the backend that is asked now."""
    ids = [rig.forward().metadata["id"] for _ in range(samples)]
    for decision_id in ids:
        rig.engine.settle(record(decision_id, last_upstream_byte_s=seconds))


@pytest.mark.parametrize(("samples", "chosen"), [(9, "a"), (10, "b")])
def test_ten_samples_tell_that_a_backend_is_too_slow(samples: int, chosen: str) -> None:
    """Telemetry hears which one was left out of which rule."""
    rig = EngineRig(_ruled())
    _slow(rig, samples)
    assert rig.telemetry.too_slow == []
    assert rig.forward().metadata["backend"] == chosen
    assert rig.telemetry.too_slow == ([("fast", ("a",), False)] if chosen == "b" else [])


@pytest.mark.parametrize(("seconds", "chosen"), [(1.0, "a"), (1.0625, "b")])
def test_a_backend_within_the_limit_stays(seconds: float, chosen: str) -> None:
    """A second is within a second."""
    rig = EngineRig(_ruled())
    _slow(rig, 10, seconds)
    assert rig.forward().metadata["backend"] == chosen


@pytest.mark.parametrize(("age_s", "chosen"), [(300.0, "b"), (300.25, "a")])
def test_old_samples_tell_nothing(age_s: float, chosen: str) -> None:
    """Five minutes after the last one the backend is asked again."""
    rig = EngineRig(_ruled())
    _slow(rig, 10)
    rig.clock.advance(age_s)
    assert rig.forward().metadata["backend"] == chosen


def test_where_all_are_too_slow_the_limit_is_given_up() -> None:
    """The request is served, and telemetry hears that the limit was missed."""
    rig = EngineRig(_ruled())
    _slow(rig, 10)
    _slow(rig, 10)
    assert rig.telemetry.too_slow == [("fast", ("a",), False)] * 10
    assert rig.forward().metadata["backend"] == "a"
    assert rig.telemetry.too_slow[10:] == [("fast", ("a", "b"), True)]


@pytest.mark.parametrize(("draw", "chosen"), [(0.0, "a"), (0.0078125, "a"), (0.01, "b"), (0.5, "b")])
def test_one_request_in_a_hundred_tries_a_slow_backend_out(draw: float, chosen: str) -> None:
    """So that one that became fast is seen to be."""
    rig = EngineRig(_ruled(), draw=lambda: draw)
    _slow(rig, 10)
    assert rig.forward().metadata["backend"] == chosen


async def test_a_request_that_has_failed_tries_nobody_out() -> None:
    """It has waited long enough; the slow backend serves it only where nobody else can."""
    rig = EngineRig(_ruled("b", "a", "c", config=trio()), draw=lambda: 0.0)
    for decision_id in [await begun(rig) for _ in range(10)]:
        rig.engine.settle(record(decision_id, last_upstream_byte_s=0.5))
    for _ in range(10):
        rig.engine.pool["a"].took(5.0, rig.clock.now_s)
    rig.engine.pool["a"].pause(rig.clock.now_s + 1)
    decision_id = await begun(rig)
    rig.clock.advance(1)
    rig.dispatcher.answer("c", event_stream(TOKEN))
    await relayed(rig, decision_id)
    assert rig.telemetry.moves == [("b", "c", "upstream_5xx")]
    assert rig.telemetry.too_slow[-1] == ("fast", ("a",), False)
