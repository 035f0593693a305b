"""Shadows: who has one, what the backend under test gets, and what stays as it is."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from router_ext.config.sections import Budget, QualityGate
from router_ext.engine.limits import KeptBytes
from router_ext.model.gate import Checks
from router_ext.model.rule import Match
from router_ext.model.snapshot import Health
from router_ext.routing.split import variant
from router_ext.stream.effects import Relayed
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head, request
from tests.fakes.rig import BODY
from tests.fakes.session_turns import CREATE, messages_of, said, with_sessions
from tests.unit.engine.gated import BAD, GOOD, SCHEMA, body_of, error, says, slow, streams
from tests.unit.engine.relays import ROLE, STREAM, TOKEN, settled
from tests.unit.engine.shadowed import (
    ShadowRig,
    answered,
    opened,
    over,
    parts_of,
    shadow_rig,
    shadow_test,
    shadowed,
    shadowing,
)

HANGING = CannedAnswer(hangs=True)
CLIENT_KEYS = head(
    authorization="Bearer client",
    x_api_key="client",
    cookie="c=1",
    openai_organization="org",
    content_type="text/plain",
)


# Who has a shadow


async def test_so_many_percent_of_the_requests_have_one() -> None:
    """Drawn by the decision's id, so for one caller as for many; the others go to variant A all the same."""
    rig = shadow_rig(test=shadow_test(split_pct=30.0))
    exchanges = [await opened(rig) for _ in range(50)]
    drawn = [exchange.id for exchange in exchanges if exchange.shadow is not None]
    assert drawn == [exchange.id for exchange in exchanges if variant("t", exchange.id, 30.0) == "b"]
    assert 0 < len(drawn) < 50


@pytest.mark.parametrize("test", [shadow_test(split_pct=0.0), shadow_test(active=False), shadow_test(mode="split")])
async def test_no_shadow_at_0_percent_in_an_idle_test_and_in_mode_split(test: object) -> None:
    """Nothing is counted either."""
    rig = shadow_rig(test=test)
    assert (await opened(rig)).shadow is None
    assert rig.results == []


def test_the_first_active_test_of_any_mode_that_matches_decides() -> None:
    """A request that a split takes has no shadow."""
    split, shop = shadow_test(name="s", mode="split", match=Match(model="m-a")), shadow_test(name="t")
    rig = ShadowRig(replace(shadowing(), ab_tests=(split, shop, shadow_test(name="u"))))
    assert rig.shadow.test_of(request("m-a")) is None
    assert rig.shadow.test_of(request("other")) == shop
    assignment = rig.shadow.assign(request("other"))
    assert assignment is not None
    assert (assignment.test, assignment.variant, assignment.backend, assignment.other_backend) == ("t", "a", "a", "a")


async def test_a_request_that_another_backend_got_has_no_shadow() -> None:
    """Variant A was down: it went the way of every other."""
    rig = ShadowRig(replace(shadowing(), defaults=replace(shadowing().defaults, fallback_chain=("a", "b"))))
    rig.engine.set_health("a", Health.DOWN)
    exchange = await opened(rig)
    assert (exchange.attempt.decision.backend, exchange.shadow, rig.results) == ("b", None, [])


@pytest.mark.parametrize(("limit", "has_one"), [(1.0, True), (0.000001, False)])
async def test_a_service_whose_budget_is_spent_has_no_shadow(limit: float, has_one: bool) -> None:
    """Also where variant A is what it is downgraded to."""
    budget = Budget("shop", limit, "downgrade", "a")
    rig = ShadowRig(replace(shadowing(), budgets=(budget,)))
    rig.engine.spend.add("shop", 1, rig.clock.wall())
    exchange = await opened(rig, head_=head(x_kronaxis_service="shop"))
    assert (exchange.attempt.decision.backend, exchange.shadow is not None) == ("a", has_one)


async def test_apis_without_a_text_have_no_shadow() -> None:
    """There is nothing to compare with."""
    rig = shadow_rig()
    assert (await opened(rig, b'{"model":"m-a","input":"hi"}', head("/v1/embeddings"))).shadow is None


# The caller


@pytest.mark.parametrize(("body", "answer"), [(BODY, says(GOOD)), (STREAM, streams("one", " two"))])
async def test_the_caller_gets_every_byte_of_variant_a(body: bytes, answer: CannedAnswer) -> None:
    """In the pieces in which it came without a shadow."""
    plain = shadow_rig(a=replace(answer), test=shadow_test(split_pct=0.0))
    expected = await answered_without(plain, body)
    rig = shadow_rig(says("something else"), a=answer)
    told = await shadowed(rig, body)
    assert told.bodies == expected
    assert (told.body, told.headers["x-kronaxis-backend"]) == (body_of(answer), "a")
    assert (rig.asked, rig.results) == (["a", "b"], ["compared"])


async def answered_without(rig: ShadowRig, body: bytes) -> list[Relayed]:
    """The body's parts of a relay that nobody follows."""
    exchange = await opened(rig, body)
    exchange.relay_first = True
    return [part async for part in parts_of(rig, exchange)][1:]


async def test_variant_b_is_asked_after_the_last_part_was_given() -> None:
    """Not while the caller still waits."""
    rig = shadow_rig(says(GOOD), a=says(GOOD))
    async with aclosing(parts_of(rig, await opened(rig))) as parts:
        async for _ in parts:
            assert rig.asked == ["a"]
    await over(rig)
    assert rig.asked == ["a", "b"]


async def test_a_variant_b_that_hangs_is_waited_for_by_nobody() -> None:
    """The request is answered and settled; the shadow ends with its time."""
    rig = shadow_rig(HANGING, a=says(GOOD), default_timeout_s=0.01)
    told = await answered(rig)
    assert (told.status, told.body, rig.in_flight()) == (200, body_of(says(GOOD)), {"a": 0, "b": 0})
    await over(rig)
    assert (rig.results, rig.in_flight()) == (["failed"], {"a": 0, "b": 0})


@pytest.mark.parametrize(
    "answer", [error(500), error(429), error(404), None, CannedAnswer(cut=True), streams("one", cut=True)]
)
async def test_errors_of_variant_b_reach_nobody(answer: CannedAnswer | None) -> None:
    """Neither the caller nor a breaker, a pause or a time to the first token."""
    rig = shadow_rig(*[replace(answer) if answer else None for _ in range(10)])
    for _ in range(10):
        rig.dispatcher.answer("a", says(GOOD))
        assert (await shadowed(rig)).status == 200
    state = rig.engine.pool["b"].state
    assert (state.health, state.tripped, state.ttft.samples) == (Health.HEALTHY, False, 0)
    assert (rig.telemetry.pauses, rig.telemetry.circuits, rig.results) == ([], [], ["failed"] * 10)


async def test_a_stream_of_variant_b_that_does_not_say_its_end_is_a_failure() -> None:
    """What came of it may be half of an answer."""
    rig = shadow_rig(CannedAnswer(200, (("content-type", "text/event-stream"),), (TOKEN,)), a=streams("one"))
    await shadowed(rig, STREAM)
    assert rig.results == ["failed"]


async def test_a_bug_is_counted_and_reaches_nobody() -> None:
    """The dispatcher raises what no call may raise."""
    rig = shadow_rig(a=says(GOOD))
    assert (await shadowed(rig)).status == 200
    assert [place for place, _ in rig.telemetry.faults] == ["shadow"]
    assert rig.in_flight() == {"a": 0, "b": 0}


# What variant B gets


async def test_variant_b_gets_its_own_model_and_key() -> None:
    """And what else of the request a backend sees; never the key of A, and A never that of B."""
    rig = shadow_rig(says(GOOD), a=says(GOOD))
    await shadowed(rig, head_=CLIENT_KEYS)
    to_a, to_b = rig.dispatcher.calls
    assert dict(to_a.headers)["authorization"] == "Bearer key-a"
    assert dict(to_b.headers) == {"content-type": "text/plain", "authorization": "Bearer key-b"}
    assert (orjson.loads(to_a.body)["model"], orjson.loads(to_b.body)["model"]) == ("m-a", "m-b")
    assert to_b.request_id == f"{rig.telemetry.decisions[0].id}.shadow"
    assert (b"key-b" in repr(to_a.headers).encode(), b"key-a" in repr(to_b.headers).encode()) == (False, False)


async def test_a_variant_b_without_a_key_gets_none_of_the_clients() -> None:
    """The client's key is for the provider of A."""
    rig = shadow_rig(says(GOOD), a=says(GOOD))
    rig.configure(shadowing(backend("a"), backend("b")))
    await shadowed(rig, head_=CLIENT_KEYS)
    to_a, to_b = rig.dispatcher.calls
    assert dict(to_a.headers)["authorization"] == "Bearer client"
    assert to_b.headers == (("content-type", "text/plain"),)


@pytest.mark.parametrize("options", [None, {"include_usage": False, "more": 1}])
async def test_a_stream_of_variant_b_is_asked_for_its_tokens(options: dict[str, object] | None) -> None:
    """Without them nobody knows what it costs; other options stay. What A was asked is as the client wrote it."""
    fields = {"model": "m-a", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    body = orjson.dumps(fields | ({} if options is None else {"stream_options": options}))
    rig = shadow_rig(streams(GOOD), a=streams(GOOD))
    await shadowed(rig, body)
    to_a, to_b = rig.dispatcher.calls
    wanted = {**(options or {}), "include_usage": True}
    assert to_a.body == body
    assert orjson.loads(to_b.body) == fields | {"model": "m-b", "stream_options": wanted}


# Accounts


async def test_the_cost_is_booked_as_a_shadow_and_no_budget_sees_it() -> None:
    """8 + 2 tokens at 10 micro-dollars of A, at 1 of B."""
    rig = ShadowRig(replace(shadowing(), budgets=(Budget("shop", 1.0),)))
    rig.dispatcher.answer("a", says(GOOD))
    rig.dispatcher.answer("b", says(GOOD))
    await shadowed(rig, head_=head(x_kronaxis_service="shop"))
    assert rig.telemetry.charges == [("shop", "a", "proxied", 100), ("shop", "b", "shadow", 10)]
    assert rig.engine.spend.spent("shop", rig.clock.wall()) == 100
    assert rig.engine.budgets.reserved("shop") == 0


async def test_what_a_failed_shadow_cost_is_booked() -> None:
    """Its tokens were counted before it broke off."""
    rig = shadow_rig(replace(says(GOOD), cut=True), a=says(GOOD))
    rig.dispatcher.answers["b"][0] = replace(says(GOOD), status=500)
    await shadowed(rig)
    assert (rig.results, rig.telemetry.charges[1:]) == (["failed"], [("", "b", "shadow", 10)])


async def test_a_shadow_counts_in_the_backend_while_it_runs() -> None:
    """As any request, so that ``max_concurrent`` holds for both."""
    waiting = slow(says(GOOD))
    rig = shadow_rig(waiting, a=says(GOOD))
    await answered(rig)
    await waiting.asked.wait()
    assert rig.in_flight() == {"a": 0, "b": 1}
    waiting.go.set()
    await over(rig)
    assert rig.in_flight() == {"a": 0, "b": 0}


async def test_a_full_variant_b_is_not_asked() -> None:
    """Its only place is taken."""
    rig = shadow_rig(a=says(GOOD))
    rig.configure(shadowing(backend("a"), backend("b", room=1)))
    rig.engine.pool["b"].acquire()
    await shadowed(rig)
    assert (rig.asked, rig.results, rig.in_flight()) == (["a"], ["skipped"], {"a": 0, "b": 1})


@pytest.mark.parametrize("down", [True, False])
async def test_a_variant_b_that_is_down_or_paused_is_not_asked(down: bool) -> None:
    """The request would tell nothing."""
    rig = shadow_rig(a=says(GOOD))
    if down:
        rig.engine.set_health("b", Health.DOWN)
    else:
        rig.engine.pool["b"].pause(rig.clock.monotonic() + 1)
    await shadowed(rig)
    assert (rig.asked, rig.results) == (["a"], ["skipped"])


async def test_the_session_holds_variant_a_only_and_no_pin_is_learned() -> None:
    """One turn with A's answer."""
    config = with_sessions(shadowing())
    pinning = replace(config.server, kv_pinning=replace(config.server.kv_pinning, enabled=True))
    rig = ShadowRig(replace(config, server=pinning))
    rig.dispatcher.answer("a", says("from A"))
    rig.dispatcher.answer("b", says("from B"))
    told = await answered(rig, head_=head(headers=CREATE))
    pins = len(rig.engine.caches)
    await over(rig)
    messages = messages_of(rig, told.headers["x-kronaxis-session-id"])
    assert [orjson.loads(message)["content"] for message in messages] == ["hi", "from A"]
    assert (rig.results, len(rig.engine.caches), rig.telemetry.pins) == (["compared"], pins, [("a", False)])


async def test_the_end_of_a_shadow_is_room_for_a_request_that_waits() -> None:
    """Whoever waits for B goes on at once."""
    waiting = slow(says(GOOD))
    rig = shadow_rig(waiting, a=says(GOOD))
    await answered(rig)
    await waiting.asked.wait()
    waiter = asyncio.create_task(rig.engine._releases.wait(5.0))
    await asyncio.sleep(0)
    waiting.go.set()
    await asyncio.wait_for(waiter, 5.0)


# Bounds


async def test_over_the_bound_shadows_are_dropped_and_counted() -> None:
    """Two are under way; the third request is answered without."""
    waiting = [slow(says(GOOD)) for _ in range(2)]
    rig = shadow_rig(*waiting, test=shadow_test(max_inflight=2))
    rig.dispatcher.answer("a", *(says(GOOD) for _ in range(3)))
    await answered(rig)
    await answered(rig)
    third = await opened(rig)
    assert (third.shadow, rig.results) == (None, ["dropped"])
    settled(rig, third.id)
    for answer in waiting:
        answer.go.set()
    await over(rig)
    assert rig.results == ["dropped", "compared", "compared"]
    assert (await opened(rig)).shadow is not None


async def test_answers_that_are_still_passing_count_as_well() -> None:
    """They are held in memory, too: of two that began together the second is dropped."""
    rig = shadow_rig(says(GOOD), test=shadow_test(max_inflight=1))
    rig.dispatcher.answer("a", says(GOOD), says(GOOD))
    first, second = await opened(rig), await opened(rig)
    parts = parts_of(rig, first)
    await anext(parts)
    told = [part async for part in parts_of(rig, second)]
    assert (len(told), rig.results) == (2, ["dropped"])
    assert [part async for part in parts]
    await over(rig)
    assert rig.results == ["dropped", "compared"]


@pytest.mark.parametrize(("spare", "result"), [(0, "compared"), (-1, "dropped")])
async def test_of_an_answer_larger_than_may_be_held_nothing_is_kept(spare: int, result: str) -> None:
    """It passes all the same."""
    answer = streams(GOOD)
    rig = shadow_rig(says(GOOD), a=answer, max_body_bytes=len(body_of(answer)) + spare)
    told = await shadowed(rig, STREAM)
    assert (told.body, rig.results) == (body_of(answer), [result])


@pytest.mark.parametrize(("spare", "result"), [(0, "compared"), (-1, "failed")])
async def test_of_variant_b_no_more_is_read_than_of_a(spare: int, result: str) -> None:
    """An answer that goes on beyond that is given up."""
    answer = says("from B, at length")
    rig = shadow_rig(answer, a=says("A"), max_body_bytes=len(body_of(answer)) + spare)
    await shadowed(rig)
    assert rig.results == [result]


@pytest.mark.parametrize(
    ("bodies", "spare", "asked", "result"),
    [
        (3, 0, ["a", "b"], "compared"),
        (3, -1, ["a", "b"], "dropped"),
        (2, -1, ["a"], "dropped"),
        (1, -1, ["a"], "dropped"),
    ],
)
async def test_all_shadows_together_hold_so_much_memory(bodies: int, spare: int, asked: list[str], result: str) -> None:
    """Short of a byte for B's answer, for A's, and for the request itself; afterwards there is room again."""
    request_body, answer, other = said("hi" * 500), says("x"), says("y")
    sizes = len(request_body), len(body_of(answer)), len(body_of(other))
    limit = sum(sizes[:bodies]) + spare
    rig = shadow_rig(other, a=answer)
    rig.shadow._memory = memory = KeptBytes(limit)
    told = await shadowed(rig, request_body)
    assert (told.body, rig.asked, rig.results) == (body_of(answer), asked, [result])
    assert memory.take(limit)


async def test_a_client_that_leaves_has_no_shadow_and_no_place() -> None:
    """Nobody knows what A would have said."""
    rig = shadow_rig(says(GOOD), test=shadow_test(max_inflight=1))
    rig.dispatcher.answer("a", streams("one", "two"), says(GOOD))
    exchange = await opened(rig, STREAM)
    async with aclosing(parts_of(rig, exchange)) as parts:
        await anext(parts)
    settled(rig, exchange.id)
    assert rig.results == ["no_primary"]
    await shadowed(rig)
    assert rig.results == ["no_primary", "compared"]


@pytest.mark.parametrize("answer", [error(400), error(500), None, event_stream(ROLE, TOKEN, cut=True)])
async def test_without_a_whole_2xx_answer_of_a_there_is_no_shadow(answer: CannedAnswer | None) -> None:
    """There is nothing to compare with."""
    rig = shadow_rig()
    rig.dispatcher.answer("a", answer)
    await shadowed(rig, STREAM)
    assert (rig.asked, rig.results) == (["a"], ["no_primary"])


async def test_an_answer_that_its_session_did_not_get_is_not_compared() -> None:
    """A's own was good, but the caller was told of an error in its place."""
    rig = ShadowRig(with_sessions(shadowing()))
    rig.sessions.read_only = True
    rig.dispatcher.answer("a", says(GOOD))
    told = await shadowed(rig, head_=head(headers=CREATE))
    assert (told.status, rig.asked, rig.results) == (503, ["a"], ["no_primary"])


async def test_an_answer_of_another_backend_is_not_compared() -> None:
    """A failed, and the next candidate answered."""
    rig = ShadowRig(replace(shadowing(), defaults=replace(shadowing().defaults, fallback_chain=("a", "b"))))
    rig.dispatcher.answer("a", error(500))
    rig.dispatcher.answer("b", says(GOOD))
    told = await shadowed(rig)
    assert (told.headers["x-kronaxis-backend"], rig.asked, rig.results) == ("b", ["a", "b"], ["no_primary"])


async def test_a_shadow_ends_with_the_router() -> None:
    """Nothing is left in flight."""
    waiting = slow(says(GOOD))
    rig = shadow_rig(waiting, a=says(GOOD))
    await answered(rig)
    await waiting.asked.wait()
    await rig.shadow.close()
    assert (rig.in_flight(), rig.telemetry.faults) == ({"a": 0, "b": 0}, [])


# With the quality gate, and what is compared


@pytest.mark.parametrize(("text", "result"), [(GOOD, "compared"), (BAD, "no_primary")])
async def test_an_answer_that_the_gate_holds_is_followed_all_the_same(text: str, result: str) -> None:
    """As it is given; where the fallback's took its place there is nothing of A to compare."""
    gate = QualityGate(enabled=True, fallback_backend="b", checks=Checks(valid_json=True))
    rig = ShadowRig(replace(shadowing(), quality_gate=gate), draw=lambda: 0.5)
    rig.dispatcher.answer("a", says(text))
    rig.dispatcher.answer("b", says(GOOD))
    await shadowed(rig)
    assert (rig.asked, rig.results) == (["a", "b"], [result])


async def test_both_answers_are_compared() -> None:
    """Words: one of three in common. A took 2 s, B 3 s; 10 tokens each."""
    first = slow(says("red green"))
    second = slow(says("red blue!"))
    rig = shadow_rig(second, a=first)
    first.acts, second.acts = lambda: rig.clock.advance(2.0), lambda: rig.clock.advance(3.0)
    first.go.set()
    second.go.set()
    await shadowed(rig)
    (comparison,) = rig.log.comparisons
    assert (comparison.similarity, comparison.length_ratio) == (1 / 3, 1.0)
    assert (comparison.a.text, comparison.a.took_s, comparison.a.cost_micro_usd) == ("red green", 2.0, 100)
    assert (comparison.b.text, comparison.b.took_s, comparison.b.cost_micro_usd) == ("red blue!", 3.0, 10)
    assert (comparison.test, comparison.decision_id) == ("t", rig.telemetry.decisions[0].id)
    assert rig.telemetry.similarities == [("t", 1 / 3)]


async def test_a_streamed_answer_is_compared_with_a_plain_one_by_what_they_say() -> None:
    """Some engines do not stream; reasoning is no part of an answer."""
    rig = shadow_rig(says("<think>hm</think>one two"), a=streams("one", " two"))
    await shadowed(rig, STREAM)
    assert [item.similarity for item in rig.log.comparisons] == [1.0]


async def test_answers_are_judged_by_the_schema_of_their_request() -> None:
    """A's fits, B's is no JSON. Without a schema neither is judged."""
    rig = shadow_rig(says(BAD), says(BAD))
    rig.dispatcher.answer("a", says(GOOD), says(GOOD))
    await shadowed(rig, head_=head(x_kronaxis_response_schema=SCHEMA))
    await shadowed(rig)
    assert [(item.a.valid, item.b.valid) for item in rig.log.comparisons] == [(True, False), (None, None)]
    assert len(rig.judge.asked) == 2


async def test_a_cost_that_is_not_known_is_none() -> None:
    """Without prices, or without a count of tokens."""
    rig = shadow_rig(says(GOOD), a=says(GOOD, usage=None))
    rig.configure(shadowing(backend("a", cost=1.0), backend("b")))
    await shadowed(rig)
    assert [(item.a.cost_micro_usd, item.b.cost_micro_usd) for item in rig.log.comparisons] == [(None, None)]


@pytest.mark.parametrize("answer", [CannedAnswer(body=(b"no JSON",)), CannedAnswer(body=(b"{}",))])
async def test_what_is_no_completion_is_not_compared(answer: CannedAnswer) -> None:
    """It is counted as such."""
    rig = shadow_rig(answer, a=says(GOOD))
    await shadowed(rig)
    assert (rig.results, rig.log.comparisons) == (["unreadable"], [])


# Figures and reload


async def test_figures_go_on_while_name_and_variants_stay() -> None:
    """Another share changes nothing of them; another backend begins them anew."""
    rig = shadow_rig(says(GOOD), a=says(GOOD))
    await shadowed(rig)
    rig.configure(shadowing(test=shadow_test(split_pct=1.0)))
    kept = rig.shadow.report("t")
    rig.configure(shadowing(test=shadow_test(variant_a="b", variant_b="a")))
    anew = rig.shadow.report("t")
    assert kept is not None
    assert anew is not None
    assert (kept["samples"], kept["results"]["compared"]) == (1, 1)
    assert (anew["samples"], anew["results"]["compared"]) == (0, 0)
    assert rig.shadow.report("other") is None


def test_only_tests_with_shadows_have_a_report() -> None:
    """A split has other figures."""
    assert shadow_rig(test=shadow_test(mode="split")).shadow.report("t") is None


async def test_a_shadow_that_outlives_its_test_is_counted_nowhere_but_in_metrics() -> None:
    """The test is gone from the configuration when B answers."""
    waiting = slow(says(GOOD))
    rig = shadow_rig(waiting, a=says(GOOD))
    await answered(rig)
    rig.configure(replace(shadowing(), ab_tests=()))
    waiting.go.set()
    await over(rig)
    assert (rig.results, rig.shadow.report("t")) == (["compared"], None)
