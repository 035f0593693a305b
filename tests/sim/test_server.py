"""The simulated engine on a socket: keys, names, limits, determinism, time and the end of a client."""

import asyncio
import sys

import pytest

from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from tests.sim.wire import chat, eventually, get, post, request_bytes, send_raw

PATH = "/v1/chat/completions"
FAST = SimSettings(prefill_tps=1e9, decode_tps=1e6)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_received_requests_are_kept_as_they_came() -> None:
    """Method, path, lower-case headers and the very bytes of the body."""
    body = b'{"model":"sim",  "messages":[{"role":"user","content":"x"}]}'
    async with SimServer(FAST) as sim:
        await post(sim.port, PATH, body, "X-Test: One\r\n")
    received = sim.requests[0]
    assert (received.method, received.path, received.body) == ("POST", PATH, body)
    assert received.headers["x-test"] == "One"


async def test_stable_ids_make_equal_requests_equal_answers_byte_for_byte() -> None:
    """Across two engines of the same settings; without the setting ids differ."""
    async with SimServer(SimSettings(stable_ids=True)) as one, SimServer(SimSettings(stable_ids=True)) as two:
        first, second = await post(one.port, PATH, chat()), await post(two.port, PATH, chat())
    assert first.body == second.body
    async with SimServer(FAST) as sim:
        third, fourth = (await post(sim.port, PATH, chat()), await post(sim.port, PATH, chat()))
    assert third.json()["id"] != fourth.json()["id"]
    assert third.json()["choices"] == fourth.json()["choices"]


async def test_another_seed_gives_other_words() -> None:
    """The text is a function of the prompt and the seed."""
    async with SimServer(SimSettings(seed=1)) as one, SimServer(SimSettings(seed=2)) as two:
        answers = [(await post(sim.port, PATH, chat())).json()["choices"][0]["message"] for sim in (one, two)]
    assert answers[0]["content"] != answers[1]["content"]


@pytest.mark.parametrize(("given", "status"), [("", 401), ("Bearer wrong", 401), ("Bearer k", 200)])
async def test_paths_under_v1_need_the_key_and_health_does_not(given: str, status: int) -> None:
    """vLLM's own rule and body."""
    header = f"Authorization: {given}\r\n"
    async with SimServer(SimSettings(api_key="k")) as sim:
        answer, models = await post(sim.port, PATH, chat(), header), await get(sim.port, "/v1/models", header)
        health = await get(sim.port, "/health")
    assert (answer.status, models.status, health.status) == (status, status, 200)
    assert answer.body == b'{"error":"Unauthorized"}' or status == 200


async def test_aliases_answer_with_the_primary_name_and_adapters_with_their_own() -> None:
    """As vLLM names its answers."""
    settings = SimSettings(model="base", aliases=("short",), loras=("sql",))
    async with SimServer(settings) as sim:
        names = [(await post(sim.port, PATH, chat(model=m))).json()["model"] for m in ("base", "short", "sql")]
        listed = [(card["id"], card["parent"]) for card in (await get(sim.port, "/v1/models")).json()["data"]]
    assert names == ["base", "base", "sql"]
    assert listed == [("base", None), ("short", None), ("sql", "base")]


async def test_a_repeated_prompt_is_cached_in_whole_blocks() -> None:
    """4 bytes a token, 16 tokens a block; usage, stats and another adapter's empty cache agree."""
    async with SimServer(SimSettings(loras=("sql",))) as sim:
        details = [
            (await post(sim.port, PATH, chat("x" * 640, model=model))).json()["usage"]
            for model in ("sim", "sim", "sql")
        ]
    assert [usage["prompt_tokens"] for usage in details] == [166, 166, 166]
    assert [usage["prompt_tokens_details"]["cached_tokens"] for usage in details] == [0, 160, 0]


async def test_prefill_and_decode_take_the_time_of_their_rates() -> None:
    """166 tokens at 1,000 a second, then 11 tokens at 100 a second: the first comes with the end of the prefill."""
    async with SimServer(SimSettings(prefill_tps=1_000, decode_tps=100)) as sim:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await post(sim.port, PATH, chat("x" * 640, max_tokens=11))
        took = loop.time() - started
    assert took >= 0.266


async def test_a_client_that_leaves_frees_its_slot() -> None:
    """Streaming stops, the sequence counts as cancelled, the engine is idle."""
    async with SimServer(SimSettings(decode_tps=10)) as sim:
        reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
        writer.write(request_bytes(PATH, chat(stream=True, max_tokens=60)))
        await reader.readuntil(b"data: ")
        assert sim.stats()["running"] == 1
        writer.close()
        await eventually(lambda: sim.stats()["running"] == 0)
        stats = sim.stats()
    assert (stats["in_flight"], stats["cancelled"], stats["served"]) == (0, 1, 0)


async def test_a_fast_engine_puts_many_events_into_one_chunk() -> None:
    """From 10,000 tokens a second on; the events are the same."""
    async with SimServer(FAST) as sim:
        answer = await post(sim.port, PATH, chat(stream=True, max_tokens=50))
    assert len(answer.events()) == 52
    assert len(answer.chunks) < 10


async def test_a_streamed_answer_says_the_same_as_a_plain_one() -> None:
    """Word for word."""
    async with SimServer(FAST) as sim:
        plain = (await post(sim.port, PATH, chat(max_tokens=20))).json()["choices"][0]
        events = (await post(sim.port, PATH, chat(max_tokens=20, stream=True))).events()
    text = "".join(item["choices"][0]["delta"].get("content", "") for item in events[:-1])
    assert (text, events[-2]["choices"][0]["finish_reason"]) == (plain["message"]["content"], plain["finish_reason"])


@pytest.mark.parametrize(
    ("more", "called"),
    [
        ({"tool_choice": "required"}, True),
        ({"tool_choice": {"type": "function", "function": {"name": "look_up"}}}, True),
        ({}, False),
        ({"messages": [{"role": "user", "content": "What is the weather?"}]}, True),
        ({"messages": [{"role": "user", "content": "What is the weather?"}], "tool_choice": "none"}, False),
    ],
)
async def test_a_tool_is_called_when_it_is_asked_for(more: dict[str, object], called: bool) -> None:
    """Required, named, or with tools given and a message about weather or a tool."""
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": CITY}}]
    async with SimServer(FAST) as sim:
        choice = (await post(sim.port, PATH, chat(tools=tools) | more)).json()["choices"][0]
    calls = choice["message"].get("tool_calls", [])
    assert [call["function"]["name"] for call in calls] == (["look_up"] if called else [])


async def test_embeddings_depend_on_the_text_and_have_the_size_asked_for() -> None:
    """One vector for each input, the same one for the same text."""
    async with SimServer(FAST) as sim:
        body = {"model": "sim", "input": ["a", "b", "a"], "dimensions": 4}
        answer = (await post(sim.port, "/v1/embeddings", body)).json()
    vectors = [item["embedding"] for item in answer["data"]]
    assert [len(vector) for vector in vectors] == [4, 4, 4]
    assert vectors[0] == vectors[2] != vectors[1]
    assert sum(value * value for value in vectors[0]) == pytest.approx(1.0, abs=1e-4)


async def test_a_streamed_response_is_numbered_and_ends_with_the_whole_response() -> None:
    """The events of the Responses API in their order; cut by the limit, it is incomplete."""
    async with SimServer(FAST) as sim:
        body = {"model": "sim", "input": "Hi", "stream": True, "max_output_tokens": 2}
        events = (await post(sim.port, "/v1/responses", body)).events()
    assert [item["sequence_number"] for item in events] == list(range(10))
    assert [item["type"] for item in events[:5]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
    ]
    assert (events[-1]["type"], events[-1]["response"]["usage"]["output_tokens"]) == ("response.incomplete", 2)


async def test_a_streamed_message_has_the_events_of_the_messages_api() -> None:
    """Start, block, deltas, stop with the reason, and vLLM's end marker."""
    async with SimServer(FAST) as sim:
        events = (await post(sim.port, "/v1/messages", chat(stream=True, max_tokens=2))).events()
    assert [item["type"] for item in events[:-1]] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert (events[5]["delta"], events[-1]) == ({"stop_reason": "max_tokens"}, "[DONE]")


@pytest.mark.parametrize(("path", "method", "status"), [("/nowhere", "GET", 404), (PATH, "GET", 405)])
async def test_unknown_paths_and_methods_are_refused(path: str, method: str, status: int) -> None:
    """With an error object."""
    async with SimServer(FAST) as sim:
        answer = await get(sim.port, path) if method == "GET" else await post(sim.port, path, {})
    assert (answer.status, answer.json()["error"]["code"]) == (status, status)


@pytest.mark.parametrize(("size", "status"), [(400_000, 200), (33_554_432, 400)])
async def test_large_bodies_are_read(size: int, status: int) -> None:
    """A 400 KB prompt is answered, one of 32 MB is too long for the model and not for the server."""
    async with SimServer(FAST) as sim:
        answer = await post(sim.port, PATH, chat("x" * size, max_tokens=1))
        assert len(sim.requests[0].body) > size
    assert answer.status == status


async def test_an_idle_connection_is_closed_after_the_keep_alive_time() -> None:
    """As real engines do."""
    async with SimServer(SimSettings(keepalive_s=0.05)) as sim:
        raw = request_bytes(PATH, chat()).replace(b"Connection: close\r\n", b"")
        assert (await send_raw(sim.port, raw)).startswith(b"HTTP/1.1 200")


async def test_a_client_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    """100 Continue first, then the answer."""
    async with SimServer(FAST) as sim:
        head, _, body = request_bytes(PATH, chat(), headers="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
        writer.write(head + b"\r\n\r\n")
        interim = await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        final = await reader.readuntil(b"\r\n")
        writer.close()
    assert (interim, final) == (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n")


async def test_the_command_serves_until_it_is_told_to_stop() -> None:
    """It prints its address once it accepts connections; SIGTERM ends it with exit code 0."""
    arguments = ("-m", "router_ext.demo.sim", "--port", "0", "--model", "m")
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
    health = await get(int(line.rpartition(":")[2]), "/health")
    process.terminate()
    code = await asyncio.wait_for(process.wait(), 10)
    assert (line.startswith("simulated engine 'm' on http://127.0.0.1:"), health.status, code) == (True, 200, 0)
