"""PREF-05: what one tenant sent must not show in what another tenant's requests match."""

import pytest

from router_ext.routing.pins import PinTable
from tests.fakes.prompts import LONG, chat, message

SECRET = message("Secret: " + LONG, "system")
GUESS = (SECRET, message("What is it?"))


@pytest.mark.parametrize("salt", [None, "b", "A", "a ", ["a"], {"a": 1}, 0])
def test_another_cache_salt_matches_nothing(salt: object) -> None:
    """Not even the blocks of the same system prompt; a missing salt is another one, too."""
    pins = PinTable(60.0, 100)
    pins.insert(chat(*GUESS, cache_salt="a").extended(), "backend-1", 0.0)
    assert pins.match(chat(*GUESS, cache_salt=salt).prompt, 1.0) == {}
    assert pins.match(chat(*GUESS, cache_salt="a").prompt, 1.0) == {"backend-1": 4419}
