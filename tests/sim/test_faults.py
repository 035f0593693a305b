"""Every fault of the simulated engine, seen from a socket."""

import asyncio

import pytest

from router_ext.demo.sim.faults import Faults
from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from tests.captures import CapturedResponse
from tests.sim.wire import chat, eventually, get, post, request_bytes, send_raw

FAST = SimSettings(prefill_tps=1e9, decode_tps=1_000)
PATH = "/v1/chat/completions"


async def ask(sim: SimServer, **more: object) -> CapturedResponse:
    """The answer to a chat request of 4 tokens."""
    return await post(sim.port, PATH, chat("Say hi", max_tokens=4, **more))


async def test_a_status_fault_answers_with_it_and_with_retry_after() -> None:
    """The next ``count`` requests only."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(status=429, retry_after_s=7, count=1))
        first, second = await ask(sim), await ask(sim)
    assert (first.status, first.headers["retry-after"], second.status) == (429, "7", 200)


async def test_paths_limit_a_fault_to_requests_that_begin_with_them() -> None:
    """Other inference paths answer as ever, and use up nothing of the count."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(status=500, paths=("/v1/completions",), count=1))
        chatted = await ask(sim)
        completed = await post(sim.port, "/v1/completions", {"model": "sim", "prompt": "x"})
    assert (chatted.status, completed.status) == (200, 500)


async def test_a_cut_stream_ends_without_its_last_chunk() -> None:
    """Role event and two tokens arrive, no end marker does."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(cut_after_events=3))
        answer = await ask(sim, stream=True)
        assert sim.stats()["cancelled"] == 1
    assert (len(answer.events()), answer.complete) == (3, False)


async def test_a_stream_can_be_cut_before_its_first_event() -> None:
    """Headers only."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(cut_after_events=0))
        answer = await ask(sim, stream=True)
    assert (answer.status, answer.events(), answer.complete) == (200, [], False)


async def test_a_cut_body_is_shorter_than_its_content_length() -> None:
    """Half of the bytes arrive."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(cut_body=True))
        answer = await ask(sim)
    assert len(answer.body) == int(answer.headers["content-length"]) // 2


async def test_bad_json_is_inside_a_whole_answer() -> None:
    """The body parses; the content, which should have been JSON, does not."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(bad_json=True))
        answer = await ask(sim, response_format={"type": "json_object"})
    assert answer.json()["choices"][0]["message"]["content"] == '{"answer": "cut off in the'


@pytest.mark.parametrize("stream", [False, True])
async def test_the_content_of_every_answer_can_be_given(stream: bool) -> None:
    """Whatever the request asks for, tools and a schema included."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(content='{"name": 7}'))
        answer = await ask(sim, stream=stream, response_format={"type": "json_object"})
    if stream:
        events = [event for event in answer.events() if event != "[DONE]"]
        said = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    else:
        said = answer.json()["choices"][0]["message"]["content"]
    assert said == '{"name": 7}'


async def test_a_bad_body_is_a_whole_body_that_is_no_json() -> None:
    """Status, type and length are those of a good answer."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(bad_body=True))
        answer = await ask(sim)
    assert (answer.status, answer.complete, answer.body) == (200, True, b'{"id":"chatcmpl-')


async def test_an_error_event_comes_inside_a_200_and_the_stream_ends_in_order() -> None:
    """After the given number of events; a plain request gets a 500."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(error_event=True, error_after_events=2))
        streamed, plain = await ask(sim, stream=True), await ask(sim)
    events = streamed.events()
    assert (streamed.status, streamed.complete, len(events), events[-1]) == (200, True, 4, "[DONE]")
    assert (events[2]["error"]["code"], plain.status) == (500, 500)


async def test_delay_comes_before_the_headers_and_first_token_delay_after_them() -> None:
    """The role event waits with the first token."""
    async with SimServer(FAST) as sim:
        loop = asyncio.get_running_loop()
        sim.faults.set(Faults(delay_s=0.05, first_token_delay_s=0.1))
        started = loop.time()
        reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
        writer.write(request_bytes(PATH, chat(stream=True)))
        await reader.readuntil(b"\r\n\r\n")
        headers_at = loop.time() - started
        await reader.readuntil(b"data: ")
        first_at = loop.time() - started
        writer.close()
    assert headers_at >= 0.05
    assert first_at - headers_at >= 0.09


async def test_a_hanging_engine_sends_nothing_and_lets_go_when_the_client_leaves() -> None:
    """In flight until then."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(hang=True))
        waiting = asyncio.ensure_future(ask(sim))
        await eventually(lambda: sim.in_flight == 1)
        waiting.cancel()
        await eventually(lambda: sim.in_flight == 0)


async def test_a_refusing_engine_closes_without_a_byte_on_every_path_but_its_own_switches() -> None:
    """Health checks fail, too; the fault can still be lifted over HTTP."""
    async with SimServer(FAST) as sim:
        sim.faults.set(Faults(refuse=True))
        paths = ((PATH, "POST"), ("/health", "GET"), ("/metrics", "GET"), ("/v1/models", "GET"))
        answers = [await send_raw(sim.port, request_bytes(path, chat(), method=method)) for path, method in paths]
        lifted = await post(sim.port, "/sim/faults", {})
        healthy = await get(sim.port, "/health")
    assert answers == [b"", b"", b"", b""]
    assert (lifted.status, healthy.status) == (200, 200)


async def test_health_faults_leave_inference_alone() -> None:
    """A failing health check beside good answers."""
    async with SimServer(FAST) as sim:
        set_it = await post(sim.port, "/sim/faults", {"health_status": 503})
        health, answer = await get(sim.port, "/health"), await ask(sim)
    assert (set_it.status, health.status, answer.status) == (200, 503, 200)


async def test_an_unknown_fault_is_refused_and_changes_nothing() -> None:
    """The message names the key."""
    async with SimServer(FAST) as sim:
        answer = await post(sim.port, "/sim/faults", {"statsu": 503})
        after = await ask(sim)
    assert (answer.status, after.status) == (400, 200)
    assert b"statsu" in answer.body
