"""Pins, and what engines report of their caches."""

from router_ext.model.prefix import Boundary, Prompt
from router_ext.routing.memory import Hold, PrefixMemory
from router_ext.routing.pins import MAX_HOLDERS

BIG = 100_000


def _prompt(text: str, size: int = BIG) -> Prompt:
    """A prompt with a boundary after each letter; letters are ``size`` long each."""
    boundaries = tuple(Boundary(text[: i + 1].encode(), (i + 1) * size) for i in range(len(text)))
    return Prompt(boundaries, len(text) * size)


def _memory() -> PrefixMemory:
    return PrefixMemory(1800.0, 10_000)


def _serve(memory: PrefixMemory, text: str, backend: str, now: float, cached: float | None = 0.0) -> bool:
    """One request from decision to end, at one instant."""
    prompt = _prompt(text)
    hold = memory.hold(prompt, backend, memory.match(prompt, now).get(backend, 0))
    kept = memory.settle(prompt, backend, hold, cached, now)
    memory.serve(prompt, backend, now)
    return kept


def test_a_served_prompt_is_expected_where_it_was_served() -> None:
    """With all its prefixes."""
    memory = _memory()
    _serve(memory, "abc", "x", 1.0)
    assert memory.match(_prompt("abcd"), 2.0) == {"x": 3 * BIG}
    assert memory.match(_prompt("abx"), 2.0) == {"x": 2 * BIG}
    assert memory.match(_prompt("xbc"), 2.0) == {}


def test_a_predicted_hit_that_was_none_drops_the_pin() -> None:
    """What was cached of it stays."""
    memory = _memory()
    _serve(memory, "abc", "x", 1.0)
    prompt = _prompt("abcd")
    assert not memory.settle(prompt, "x", memory.hold(prompt, "x", 3 * BIG), BIG, 2.0)
    assert memory.match(prompt, 3.0) == {"x": BIG}


def test_without_a_report_the_pin_stays() -> None:
    """An engine that says nothing is taken at the table's word."""
    memory = _memory()
    _serve(memory, "abc", "x", 1.0, None)
    assert _serve(memory, "abcd", "x", 2.0, None)
    assert memory.match(_prompt("abcd"), 3.0) == {"x": 4 * BIG}


def test_prompts_beyond_the_learned_reach_do_not_match() -> None:
    """After "a" was found gone behind nine other prompts, "b" behind nine others is not expected either, "s" is."""
    memory = _memory()
    for now, text in enumerate("abcdefghij"):
        _serve(memory, text, "x", float(now), cached=1.0)
    assert not _serve(memory, "a", "x", 10.0)
    for now, text in enumerate("klmnopqrs", start=11):
        _serve(memory, text, "x", float(now), cached=1.0)
    assert memory.match(_prompt("b"), 20.0) == {}
    assert memory.match(_prompt("s"), 20.0) == {"x": BIG}


def test_the_reach_of_one_cache_says_nothing_of_another() -> None:
    """Each backend has its own."""
    memory = _memory()
    for now, text in enumerate("abcdefghij"):
        for backend in ("x", "y"):
            _serve(memory, text, backend, float(now), cached=1.0)
    _serve(memory, "a", "x", 10.0)
    for now, text in enumerate("klmnopqrs", start=11):
        for backend in ("x", "y"):
            _serve(memory, text, backend, float(now), cached=1.0)
    assert memory.match(_prompt("b"), 20.0) == {"y": BIG}


def test_a_backend_that_started_anew_holds_nothing() -> None:
    """Its reach is learned anew, too: another engine may run there now."""
    memory = _memory()
    for now, text in enumerate("abcdefghij"):
        _serve(memory, text, "x", float(now), cached=1.0)
    _serve(memory, "a", "x", 10.0)
    memory.forget("x")
    assert memory.match(_prompt("j"), 11.0) == {}
    for now, text in enumerate("abcdefghijklmn", start=11):
        _serve(memory, text, "x", float(now), cached=1.0)
    assert memory.match(_prompt("a"), 30.0) == {"x": BIG}


def test_a_request_without_a_match_expects_nothing() -> None:
    """Its report is still learned from."""
    assert _memory().hold(_prompt("abc"), "x", 0) == Hold(0, 0.0)


def test_a_prefix_of_all_clients_is_known_on_every_backend() -> None:
    """Up to 64 of them; then the one that used it least recently makes room."""
    memory = _memory()
    for i in range(MAX_HOLDERS + 1):
        memory.serve(_prompt("a"), f"node-{i}", float(i))
    assert memory.match(_prompt("a"), 100.0).keys() == {f"node-{i}" for i in range(1, 65)}
