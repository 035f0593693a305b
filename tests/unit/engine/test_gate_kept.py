"""What is kept of gated requests: turns of sessions, and pairs to learn from."""

import pytest

from router_ext.config.sections import OnExhausted
from router_ext.model.gate import Checks, SchemaVerdict
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import head
from tests.fakes.rig import BODY
from tests.fakes.session_turns import CREATE, assistant, continues, messages_of, said, user, with_sessions
from tests.unit.engine.gated import (
    BAD,
    BETTER,
    GOOD,
    WITH_SCHEMA,
    WORSE,
    answering,
    asked,
    asked_stream,
    calling,
    error,
    gated,
    gated_rig,
    quality,
    says,
    streams,
)
from tests.unit.engine.relays import JSON

# Sessions


@pytest.mark.parametrize(
    ("cheap", "fallback", "kept"),
    [(GOOD, says(BETTER), GOOD), (BAD, says(BETTER), BETTER), (BAD, says(WORSE), WORSE), (BAD, error(500), BAD)],
)
@pytest.mark.parametrize("parallel", [False, True])
async def test_a_session_keeps_the_answer_that_the_client_got(
    cheap: str, fallback: CannedAnswer, kept: str, *, parallel: bool
) -> None:
    """And no other; the next turn brings it to the backend."""
    rig = gated_rig(with_sessions(gated(parallel=parallel)))
    rig.dispatcher.answer("a", says(cheap))
    rig.dispatcher.answer("b", fallback)
    told = await asked(rig, said("hi"), head(headers=CREATE))
    session_id = told.headers["x-kronaxis-session-id"]
    assert messages_of(rig, session_id) == (user("hi"), assistant(kept))
    rig.dispatcher.forget()
    rig.dispatcher.answer("a", says(GOOD))
    rig.dispatcher.answer("b", says(GOOD))
    await asked(rig, said("more"), head(headers=continues(session_id)))
    assert messages_of(rig, session_id) == (user("hi"), assistant(kept), user("more"), assistant(GOOD))
    assert rig.dispatcher.calls[0].body.endswith(
        b'"messages":[' + b",".join((user("hi"), assistant(kept), user("more"))) + b"]}"
    )


async def test_a_session_keeps_a_stream_that_was_held() -> None:
    """The fallback's, of which the client got each event."""
    rig = gated_rig(with_sessions(gated()))
    rig.dispatcher.answer("a", streams(BAD))
    rig.dispatcher.answer("b", streams('{"n"', ":2}"))
    told = await asked(rig, said("hi", stream=True), head(headers=CREATE, x_kronaxis_response_schema="{}"))
    assert messages_of(rig, told.headers["x-kronaxis-session-id"]) == (user("hi"), assistant(BETTER))


async def test_a_turn_without_a_good_answer_is_not_kept() -> None:
    """The client got an error, and no session."""
    rig = gated_rig(with_sessions(gated(on_exhausted=OnExhausted.ERROR)))
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", says(WORSE))
    told = await asked(rig, said("hi"), head(headers=CREATE))
    assert (told.status, "x-kronaxis-session-id" in told.headers) == (502, False)
    assert (rig.sessions.sessions, rig.telemetry.unsaved_turns) == ({}, ["failed"])


# Pairs


@pytest.mark.parametrize(
    ("cheap", "fallback", "texts"),
    [
        (says(GOOD), None, []),
        (says(BAD), says(GOOD), [(BAD, GOOD)]),
        (says(BAD), says(WORSE), []),
        (says(BAD), error(500), []),
        (says(BAD), None, []),
        (error(500), says(GOOD), []),
        (None, says(GOOD), []),
        (error(400), says(GOOD), []),
        (CannedAnswer(body=(b"{}",)), says(GOOD), []),
    ],
)
@pytest.mark.parametrize("parallel", [False, True])
async def test_each_rescue_whose_fallback_passed_is_a_pair(
    cheap: CannedAnswer | None, fallback: CannedAnswer | None, texts: list[tuple[str, str]], *, parallel: bool
) -> None:
    """Of two texts: what failed, or is no completion at all, has none."""
    rig = answering(cheap, fallback=fallback, parallel=parallel)
    await asked(rig)
    assert rig.pairs.texts() == texts


async def test_a_pair_tells_who_answered_and_what_was_wrong() -> None:
    """By the rule that chose the cheap backend, with the body as the client sent it."""
    rig = answering(says(GOOD), fallback=says(BETTER), checks=Checks())
    rig.judge.verdicts[GOOD] = SchemaVerdict.INVALID
    await asked(rig, BODY, WITH_SCHEMA)
    (rescue,) = rig.pairs.rescues
    assert (rescue.cheap.backend, rescue.cheap.rule, rescue.expensive.backend) == ("a", "default", "b")
    assert (rescue.reason, rescue.expensive.attempt) == ("schema", 2)
    assert rescue.body.envelope.raw == BODY
    assert rig.pairs.texts() == [(GOOD, BETTER)]


async def test_the_prompt_of_a_pair_is_the_whole_conversation() -> None:
    """What the session adds is part of it."""
    rig = gated_rig(with_sessions(gated()))
    rig.dispatcher.answer("a", says(GOOD), says(BAD))
    rig.dispatcher.answer("b", says(BETTER))
    told = await asked(rig, said("hi"), head(headers=CREATE))
    await asked(rig, said("more"), head(headers=continues(told.headers["x-kronaxis-session-id"])))
    (rescue,) = rig.pairs.rescues
    assert rescue.body.envelope.fields["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": GOOD},
        {"role": "user", "content": "more"},
    ]


@pytest.mark.parametrize("answer", [CannedAnswer(200, JSON, (b"x" * 251, b"y")), calling()])
async def test_an_answer_that_nobody_judged_is_no_pair(answer: CannedAnswer) -> None:
    """The fallback's is larger than may be held, or calls a tool."""
    rig = answering(says(BAD), fallback=answer, max_body_bytes=250)
    assert quality(await asked(rig)) == ("skipped", "b", "2")
    assert rig.pairs.rescues == []


async def test_streams_are_pairs_too() -> None:
    """Of their texts."""
    rig = answering(streams("no ", "JSON"), fallback=streams('{"n"', ":2}"))
    await asked_stream(rig)
    assert rig.pairs.texts() == [(BAD, BETTER)]
