"""PREF-08: a popular system prompt must not draw all traffic to the one backend that saw it first."""

from router_ext.routing.pins import PinTable
from tests.fakes.prompts import LONG, chat, message

SHORT = message("You are a helpful assistant.", "system")


def test_a_short_shared_system_prompt_does_not_pin() -> None:
    """Other users' requests match nothing; the same conversation does from its second turn on."""
    pins = PinTable(60.0, 100)
    answer = message("Hi", "assistant")
    pins.insert(chat(SHORT, message("I am Ann.")).extended([answer]), "backend-1", 0.0)
    assert pins.match(chat(SHORT, message("I am Bob.")).prompt, 1.0) == {}
    assert pins.match(chat(SHORT, message("I am Ann."), answer, message("Bye")).prompt, 1.0) == {"backend-1": 39}


def test_a_long_shared_system_prompt_names_every_backend_that_holds_it() -> None:
    """So that the load can decide between them."""
    pins = PinTable(60.0, 100)
    long = message(LONG, "system")
    for at, backend in enumerate(("backend-1", "backend-2")):
        pins.insert(chat(long, message(f"I am user {at}.")).extended(), backend, float(at))
    assert pins.match(chat(long, message("I am Bob.")).prompt, 2.0) == {"backend-2": 4400, "backend-1": 4400}
