"""The timing model, second by second, without a clock."""

import pytest

from router_ext.demo.sim.engine import Engine
from router_ext.demo.sim.prompt import Prompt, read_prompt
from router_ext.demo.sim.settings import SimSettings

SLOW = SimSettings(prefill_tps=100.0, max_num_seqs=2, block_size=16, cache_blocks=10)


def prompt(text: str, settings: SimSettings = SLOW, salt: str = "") -> Prompt:
    """A prompt of this text, 4 bytes a token."""
    read = read_prompt(text.encode(), salt, settings)
    assert isinstance(read, Prompt)
    return read


def test_a_prefill_ends_after_its_uncached_tokens_over_the_rate() -> None:
    """400 bytes are 100 tokens: one second at 100 a second; just before, nothing is done."""
    engine = Engine(SLOW)
    sequence = engine.submit(prompt("a" * 400), now=5.0)
    assert engine.due == 6.0
    assert engine.advance(5.999) == []
    assert engine.advance(6.0) == [sequence]
    assert sequence is not None
    assert sequence.prefilled_at == 6.0


def test_prefills_are_serial_and_follow_each_other_without_a_gap() -> None:
    """The second one ends a second after the first, however late the engine is told."""
    engine = Engine(SLOW)
    first, second = engine.submit(prompt("a" * 400), 0.0), engine.submit(prompt("b" * 400), 0.0)
    assert (engine.running, engine.waiting) == (1, 1)
    assert engine.advance(2.5) == [first, second]
    assert second is not None
    assert second.prefilled_at == 2.0
    assert (engine.running, engine.waiting) == (2, 0)


def test_no_more_than_max_num_seqs_run_and_the_next_starts_when_a_slot_is_free() -> None:
    """Two decode, the third waits for a release."""
    engine = Engine(SLOW)
    first, _, third = (engine.submit(prompt(letter * 400), 0.0) for letter in "abc")
    assert first is not None
    engine.advance(10.0)
    assert (engine.running, engine.waiting, engine.due) == (2, 1, None)
    engine.release(first, 10.0, "stop", 3)
    assert (engine.running, engine.waiting, engine.due) == (2, 0, 11.0)
    assert engine.advance(11.0) == [third]


@pytest.mark.parametrize(("limit", "accepted"), [(0, 1), (1, 2), (None, 3)])
def test_a_full_queue_rejects(limit: int | None, accepted: int) -> None:
    """``max_queue`` counts those that cannot start at once."""
    engine = Engine(SimSettings(prefill_tps=1.0, max_queue=limit))
    taken = [engine.submit(prompt(letter * 400), 0.0) for letter in "abc"]
    assert sum(sequence is not None for sequence in taken) == accepted
    assert engine.counters.rejected == 3 - accepted


def test_a_cached_prefix_is_not_computed_again() -> None:
    """96 of 100 tokens fill 6 blocks: 4 tokens are left, 0.04 s."""
    engine = Engine(SLOW)
    engine.submit(prompt("a" * 400), 0.0)
    engine.advance(1.0)
    again = engine.submit(prompt("a" * 400), 1.0)
    assert engine.due == pytest.approx(1.04)
    assert again is not None
    assert again.cached_tokens == 96


def test_the_last_token_is_always_computed() -> None:
    """A prompt of exactly 2 blocks hits one of them only."""
    engine = Engine(SLOW)
    for now in (0.0, 1.0):
        sequence = engine.submit(prompt("a" * 128), now)
        engine.advance(now + 1.0)
    assert sequence is not None
    assert sequence.cached_tokens == 16


def test_prompts_of_different_salts_share_nothing() -> None:
    """An adapter's cache is its own."""
    engine = Engine(SLOW)
    engine.submit(prompt("a" * 400, salt="one"), 0.0)
    engine.advance(1.0)
    other = engine.submit(prompt("a" * 400, salt="two"), 1.0)
    assert other is not None
    assert other.cached_tokens == 0


def test_a_cancelled_prefill_runs_to_its_end_and_wakes_nobody() -> None:
    """Its slot is taken until then, and its blocks are cached after it."""
    engine = Engine(SLOW)
    gone = engine.submit(prompt("a" * 400), 0.0)
    assert gone is not None
    engine.cancel(gone, 0.1)
    assert (engine.running, engine.due) == (1, 1.0)
    assert engine.advance(1.0) == []
    assert (engine.running, engine.counters.finished["abort"], len(engine.cache)) == (0, 1, 6)


def test_cancelling_frees_a_waiting_or_decoding_sequence_at_once() -> None:
    """The queue moves up."""
    engine = Engine(SLOW)
    first, second = engine.submit(prompt("a" * 400), 0.0), engine.submit(prompt("b" * 400), 0.0)
    assert first is not None
    assert second is not None
    engine.cancel(second, 0.5)
    assert engine.waiting == 0
    engine.advance(1.0)
    engine.cancel(first, 1.5, generated=4)
    assert (engine.running, engine.due, engine.counters.generation_tokens) == (0, None, 4)


def test_usage_of_the_cache_counts_running_sequences_only() -> None:
    """7 started blocks of 10 while it runs; none when idle, though the prefix still hits."""
    engine = Engine(SLOW)
    sequence = engine.submit(prompt("a" * 400), 0.0)
    assert sequence is not None
    assert engine.kv_usage == 0.7
    engine.advance(1.0)
    engine.release(sequence, 1.0, "stop", 1)
    assert engine.kv_usage == 0.0
    assert len(engine.cache) == 6
