"""Where the URL of a backend that the API adds leads."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from router_ext.admin.resolver import MAX_LOOK_UPS, Resolver
from router_ext.admin.targets import Targets, private_allowed
from router_ext.config.problem import ConfigError

UNRESOLVED = "the host cannot be resolved"
PRIVATE = "the host resolves to a private or loopback address: set ROUTER_ALLOW_PRIVATE_BACKENDS=true to allow that"


def targets(*found: str, allow_private: bool = False) -> Targets:
    """A resolver that knows one answer."""

    async def lookup(_host: str, _port: int) -> Sequence[str]:
        return found

    return Targets(allow_private, lookup)


async def test_a_host_with_public_addresses_is_allowed() -> None:
    """Both families."""
    assert await targets("8.8.8.8", "2606:4700::1111").objection("https://api.example.org/v1") is None


@pytest.mark.parametrize("found", [["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::1"]])
async def test_every_address_counts(found: list[str]) -> None:
    """Envoy may take any of them."""
    assert await targets(*found).objection("http://h") == PRIVATE
    assert await targets(*found, allow_private=True).objection("http://h") is None


async def test_the_worst_address_is_named() -> None:
    """What no setting allows, even beside what one would."""
    found = targets("10.0.0.1", "169.254.169.254")
    assert await found.objection("http://h") == "the host resolves to the address of a cloud's metadata service"


async def test_a_metadata_name_is_refused_without_a_look_up() -> None:
    """Whatever it resolves to here."""
    assert await targets("8.8.8.8").objection("http://metadata.google.internal/x") == (
        "the host is a cloud's metadata service"
    )


@pytest.mark.parametrize("url", ["", "ftp://h", "http://", "http://u:p@h", "env:X", 7, None])
async def test_what_is_no_url_is_left_to_the_reader_of_the_configuration(url: object) -> None:
    """It refuses all of these, with its own words."""
    assert await targets("10.0.0.1").objection(url) is None


@pytest.mark.parametrize("error", [OSError(), UnicodeError()], ids=["unknown", "no name"])
async def test_a_name_that_cannot_be_resolved_is_refused(error: Exception) -> None:
    """It may lead anywhere later."""

    async def lookup(_host: str, _port: int) -> Sequence[str]:
        raise error

    assert await Targets(allow_private=True, lookup=lookup).objection("http://h") == UNRESOLVED
    assert await targets().objection("http://h") == UNRESOLVED


async def test_a_look_up_has_a_deadline() -> None:
    """A resolver that says nothing ends nothing else."""

    async def lookup(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    assert await Targets(allow_private=True, lookup=lookup, deadline_s=0.01).objection("http://h") == UNRESOLVED


async def test_names_that_hang_hold_up_no_other_work() -> None:
    """More of them than the event loop has threads: each is refused at its deadline, and a file is read meanwhile."""
    go_on = threading.Event()

    def hang(_host: str, _port: int) -> Sequence[str]:
        go_on.wait(20)
        return ["8.8.8.8"]

    slow = Targets(allow_private=False, lookup=Resolver(hang), deadline_s=0.01)
    try:
        objections = [await slow.objection("http://h") for _ in range(40)]
        assert objections == [UNRESOLVED] * 40
        assert [thread.name for thread in threading.enumerate()].count("look-up") == MAX_LOOK_UPS
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "read"), 5) == "read"
    finally:
        go_on.set()


async def test_a_name_that_was_given_up_makes_room_once_the_resolver_answers() -> None:
    """No look-up is lost for good."""
    go_on = threading.Event()

    def hang(_host: str, _port: int) -> Sequence[str]:
        go_on.wait(20)
        return ["8.8.8.8"]

    resolver = Resolver(hang)
    slow = Targets(allow_private=False, lookup=resolver, deadline_s=0.01)
    assert [await slow.objection("http://h") for _ in range(MAX_LOOK_UPS + 1)] == [UNRESOLVED] * (MAX_LOOK_UPS + 1)
    go_on.set()
    patient = Targets(allow_private=False, lookup=resolver, deadline_s=5)
    async with asyncio.timeout(5):
        while await patient.objection("http://h") is not None:  # noqa: ASYNC110 - the condition is another thread's
            await asyncio.sleep(0)


@pytest.mark.parametrize("host", ["0x7f.1", "0177.0.0.1", "127.1", "localhost"])
async def test_numeric_spellings_are_what_the_resolver_makes_of_them(host: str) -> None:
    """It, and not the spelling, says where Envoy would connect to. A form that is no URL here is refused elsewhere."""
    found = await Resolver()(host, 80)
    assert {"127.0.0.1", "::1"} >= set(found)
    objection = await Targets(allow_private=False).objection(f"http://{host}")
    assert objection in (PRIVATE, None)
    assert (objection is None) == (host in ("0177.0.0.1", "127.1"))


@pytest.mark.parametrize(("value", "allowed"), [("", False), ("false", False), ("true", True), ("TRUE", True)])
def test_the_variable_is_true_or_false(value: str, allowed: bool) -> None:
    """Not set is false."""
    assert private_allowed({"ROUTER_ALLOW_PRIVATE_BACKENDS": value}) is allowed
    assert private_allowed({}) is False


@pytest.mark.parametrize("value", ["yes", "1", " true"])
def test_another_word_ends_the_start(value: str) -> None:
    """Rather than mean the opposite of what was meant."""
    with pytest.raises(ConfigError) as error:
        private_allowed({"ROUTER_ALLOW_PRIVATE_BACKENDS": value})
    assert str(error.value) == "env ROUTER_ALLOW_PRIVATE_BACKENDS: must be true or false"
