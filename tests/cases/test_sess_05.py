"""SESS-05: a history that was cut to its last messages held tool results without their calls."""

import orjson

from tests.fakes.domain import backend, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import CREATE, ask, begin, body_of, continues, messages_of, plain, user, with_sessions

SYSTEM = orjson.dumps({"role": "system", "content": "Use the tools."})


def _call(number: int) -> bytes:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return orjson.dumps({"role": "assistant", "content": None, "tool_calls": calls})


def _result(number: int) -> bytes:
    return orjson.dumps({"role": "tool", "tool_call_id": f"c{number}", "content": "ok"})


PAIRS = tuple(message for number in range(60) for message in (_call(number), _result(number)))
HISTORY = (SYSTEM, user("go"), *PAIRS)


def _session(max_context_tokens: int) -> tuple[EngineRig, str]:
    """The history of the report and its answer, which the engine counts at 4,000 tokens together."""
    rig = EngineRig(with_sessions(router(backend("a")), max_context_tokens=max_context_tokens))
    answer = plain("Done.", usage=(3990, 10))
    return rig, ask(rig, body_of(*HISTORY), CREATE, answer).session_id


def test_a_long_history_is_sent_whole() -> None:
    """All 60 calls with their results, in front of the new message."""
    rig, session_id = _session(100_000)
    asked = begin(rig, body_of(user("And now?")), continues(session_id))
    sent = orjson.loads(asked.sent)["messages"]
    assert [message["role"] for message in sent] == [
        *("system", "user", *(("assistant", "tool") * 60), "assistant", "user")
    ]
    calls = [message["tool_calls"][0]["id"] for message in sent if message.get("tool_calls")]
    assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]


def test_a_history_that_does_not_fit_is_refused_with_both_numbers() -> None:
    """413 instead of a broken prompt; nothing is cut, also not in the store.

    The 10,557 bytes of the history were 3,990 tokens, so the 36 bytes of the new message are about 14.
    """
    rig, session_id = _session(4000)
    before = messages_of(rig, session_id)
    asked = ask(rig, body_of(user("And now?")), continues(session_id))
    assert (asked.status, asked.error["code"], asked.error["param"]) == (413, "session_too_long", "messages")
    assert asked.error["message"] == "The context would have about 4014 tokens; a session may have 4000."
    assert messages_of(rig, session_id) == before
    assert len(rig.telemetry.decisions) == 1


def test_a_tool_result_alone_is_a_turn_whose_call_is_in_the_session() -> None:
    """The call stands right in front of it."""
    rig = EngineRig(with_sessions(router(backend("a"))))
    message = orjson.loads(_call(7))
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    answer = orjson.dumps({"choices": [choice]})
    session_id = ask(rig, body_of(user("go")), CREATE, answer).session_id
    sent = orjson.loads(begin(rig, body_of(_result(7)), continues(session_id)).sent)["messages"]
    assert sent == [orjson.loads(user("go")), message, orjson.loads(_result(7))]
