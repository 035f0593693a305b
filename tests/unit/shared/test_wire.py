"""Messages between routers: what is sent, and what is made of anything else."""

from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.model.prefix import Boundary, Prompt
from router_ext.model.shared import CircuitChanged, PrefixServed, SharedEvent, SpendTold, prefix_served
from router_ext.shared.wire import MAX_BYTES, decode, decode_event, encode, kind
from tests.fakes.domain import backend

SERVED = PrefixServed("a", "http://a:8000", "m", ((bytes(range(16)), 2048),))
OPENED = CircuitChanged("a", "http://a:8000", is_open=True)
SPENT = SpendTold("r-1", date(2026, 3, 10), (("shop", 1_500_000), ("other", 0)))


def packed(*elements: object) -> bytes:
    """A MessagePack array."""
    return msgspec.msgpack.encode(elements)


def test_a_message_is_an_array_of_version_sender_and_events() -> None:
    """Routers of several versions talk to each other: this is what they agree on."""
    served = ["prefix_served", "a", "http://a:8000", "m", [[bytes(range(16)), 2048]]]
    opened = ["circuit_changed", "a", "http://a:8000", True]
    spent = ["spend_told", "r-1", "2026-03-10", [["shop", 1_500_000], ["other", 0]]]
    assert encode("me", [SERVED, OPENED, SPENT]) == packed(1, "me", [served, opened, spent])
    assert encode("me", []) == packed(1, "me", [])


def read(data: bytes) -> tuple[str, list[SharedEvent | None]] | None:
    """Sender and events of a message."""
    message = decode(data)
    return None if message is None else (message.sender, [decode_event(event) for event in message.events])


@pytest.mark.parametrize("events", [[], [SERVED], [OPENED, SERVED, SPENT], [OPENED] * 32])
def test_what_was_sent_is_what_comes(events: list[SharedEvent]) -> None:
    """With its sender, in order."""
    assert read(encode("me", events)) == ("me", events)


@pytest.mark.parametrize(
    ("event", "name"), [(SERVED, "prefix_served"), (OPENED, "circuit_changed"), (SPENT, "spend_told")]
)
def test_kinds_are_metric_labels(event: SharedEvent, name: str) -> None:
    """Their names do not change."""
    assert kind(event) == name


def test_fields_of_a_later_version_are_skipped() -> None:
    """At the end of an event and of the message."""
    longer = packed(1, "me", [["circuit_changed", "a", "http://a:8000", True, "why"]], "more")
    assert read(longer) == ("me", [OPENED])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"{}",
        packed(),
        packed(1, "me"),
        packed(2, "me", []),
        packed(1, "", []),
        packed(1, "x" * 65, []),
        packed(1, b"\xff", []),
        b"\x93\x01\xa1\xff\x90",
        packed(1, "me", [0] * 33),
        b"\x94\x01\xa1m\x90" + b"\x91" * 120_000,
        b"\x93\x01\xa1m\x91" + b"\x91" * 120_000,
        packed(1, "me", [], bytes(MAX_BYTES)),
        encode("me", [OPENED])[:-1],
    ],
)
def test_what_is_no_message_is_none(data: bytes) -> None:
    """Another version, wrong types, too much, too deep, cut short."""
    assert decode(data) is None


@pytest.mark.parametrize(
    "event",
    [
        0,
        [],
        ["spend_changed", 1],
        ["circuit_changed", "a", "http://a:8000"],
        ["circuit_changed", "a", "http://a:8000", "yes"],
        ["circuit_changed", "", "http://a:8000", True],
        ["circuit_changed", b"\xff", "http://a:8000", True],
        ["prefix_served", "a", "http://a:8000", "m", [[bytes(15), 1]]],
        ["prefix_served", "a", "http://a:8000", "m", [[bytes(16), -1]]],
        ["prefix_served", "a", "http://a:8000", "m", [[bytes(16), 1]] * 65],
        ["prefix_served", "a", "http://a:8000", "m" * 513, []],
        ["spend_told", "r", "2026-03-10"],
        ["spend_told", "", "2026-03-10", []],
        ["spend_told", "r" * 65, "2026-03-10", []],
        ["spend_told", "r", "2026-02-30", []],
        ["spend_told", "r", "today", []],
        ["spend_told", "r", 20_260_310, []],
        ["spend_told", "r", "2026-03-10", [["shop", 1]] * 101],
        ["spend_told", "r", "2026-03-10", [["shop", -1]]],
        ["spend_told", "r", "2026-03-10", [["shop", 2**53 + 1]]],
        ["spend_told", "r", "2026-03-10", [["shop", 2**64 - 1]]],
        ["spend_told", "r", "2026-03-10", [["shop", 1.5]]],
        ["spend_told", "r", "2026-03-10", [["shop"]]],
        ["spend_told", "r", "2026-03-10", [["", 1]]],
        ["spend_told", "r", "2026-03-10", [["s" * 129, 1]]],
        ["spend_told", "r", "2026-03-10", [["shop\n", 1]]],
        ["spend_told", "r", "2026-03-10", [["caf\u00e9", 1]]],
    ],
)
def test_what_is_no_event_leaves_the_others_of_its_message(event: object) -> None:
    """A kind that only later versions know, wrong types, too much."""
    opened = ["circuit_changed", "a", "http://a:8000", True]
    assert read(packed(1, "me", [opened, event, opened])) == ("me", [OPENED, None, OPENED])


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    """Whoever reaches the server may send anything."""
    read(data)


@given(st.data())
def test_no_damaged_message_raises(data: st.DataObject) -> None:
    """Nor one with any byte changed."""
    message = bytearray(encode("me", [SERVED, OPENED, SPENT]))
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(message))


def prompt(count: int) -> Prompt:
    """A prompt with so many boundaries, of sizes 1, 2, 3 and so on."""
    return Prompt(tuple(Boundary(size.to_bytes(16, "big"), size) for size in range(1, count + 1)), count)


@pytest.mark.parametrize("count", [0, 1, 64])
def test_a_prompt_of_up_to_64_boundaries_is_told_whole(count: int) -> None:
    """Every prefix of it."""
    assert prefix_served(backend("a"), prompt(count)).prompt == prompt(count)


def test_of_a_longer_prompt_both_ends_are_told_whole_and_the_rest_in_steps() -> None:
    """The shared beginning and what the next turn repeats are matched to the block."""
    for count, between in ((65, range(25, 42, 2)), (1024, range(25, 1001, 61))):
        told = [size for _, size in prefix_served(backend("a"), prompt(count)).boundaries]
        assert told == [*range(1, 25), *between, *range(count - 23, count + 1)]
        assert len(told) <= 64


@pytest.mark.parametrize(
    ("event", "size"),
    [
        (PrefixServed("a" * 512, "b" * 512, "c" * 512, ((bytes(16), 2**40),) * 64), 3355),
        (SpendTold("é" * 64, date(2026, 3, 10), (("s" * 128, 2**53),) * 100), 14_156),
    ],
)
def test_the_largest_message_fits(event: SharedEvent, size: int) -> None:
    """32 events with names of 512 characters and 64 boundaries; or with a hundred totals, each at its bounds."""
    assert len(encode("me", [event])) - len(encode("me", [])) == size
    assert len(encode("me", [event] * 32)) < MAX_BYTES
    assert read(encode("me", [event] * 32)) == ("me", [event] * 32)
