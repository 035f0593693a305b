"""The quality gate through the real Envoy: what the client gets, and what it learns of it."""

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.envoy.raw_backend import raw_backend
from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, ROUTER_EXT, Stack, chat, http, stack

GATED = """
backends:
  - {name: cheap, url: "http://127.0.0.1:{cheap}", type: vllm, model_name: m, cost_input_1m: 1, cost_output_1m: 1}
  - {name: strong, url: "http://127.0.0.1:{strong}", type: vllm, model_name: big, cost_input_1m: 9, cost_output_1m: 9}
rules:
  - {name: work, priority: 1, match: {service: shop}, backends: [cheap]}
defaults: {fallback_chain: [cheap]}
quality_gate:
  enabled: true
  mode: {mode}
  fallback_backend: strong
  sample_rate: 0
  dpo_export: {enabled: true, output_path: pairs.jsonl}
"""
FAST = ["--prefill-tps", "10000000", "--decode-tps", "100000"]
SIMS: dict[str, Sequence[str]] = {"cheap": ["--model", "m", *FAST], "strong": ["--model", "big", *FAST]}
SERVICE = {"x-kronaxis-service": "shop"}
DROPPED = "kronaxis_router_dpo_dropped_total"
GATE = "kronaxis_router_quality_gate_total"

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "home": {"$ref": "#/$defs/home"}},
    "required": ["name"],
    "$defs": {"home": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
GOOD = '{"name": "Ada"}'
BETTER = '{"name": "Ada Lovelace"}'


@dataclass(frozen=True, slots=True)
class Given:
    """What a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The content of the answer, plain or streamed."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            content: str = json.loads(self.body)["choices"][0]["message"]["content"]
            return content
        events = [line.removeprefix(b"data: ") for line in self.body.split(b"\n\n") if line]
        assert events[-1] == b"[DONE]"
        chunks = [json.loads(data)["choices"] for data in events[:-1]]
        return "".join(choices[0]["delta"].get("content") or "" for choices in chunks if choices)

    @property
    def verdict(self) -> tuple[int, str | None, str | None]:
        """Status, quality, and who answered."""
        return self.status, self.headers.get("x-kronaxis-quality"), self.headers.get("x-kronaxis-backend")


def config(mode: str = "sequential", more: str = "") -> str:
    """The configuration of one mode; ``more`` are further lines of the gate's section."""
    return GATED.replace("{mode}", mode) + more


@pytest.fixture(scope="module")
def started() -> Iterator[Stack]:
    """One stack in sequential mode."""
    with stack(config(), SIMS) as running:
        yield running


@pytest.fixture
def running(started: Stack) -> Iterator[Stack]:
    """The stack, whose strong backend says something better; without faults afterwards."""
    says(started, strong=BETTER)
    yield started
    for name in SIMS:
        started.sim_faults(name)
    wait_until(lambda: started.in_flight() == 0, "nothing in flight")


def says(running: Stack, **contents: str) -> None:
    """What each backend answers from now on."""
    for name, content in contents.items():
        running.sim_faults(name, content=content)


def schema_header(schema: Any) -> dict[str, str]:
    """A schema that comes inline, for a service of its own."""
    return SERVICE | {"x-kronaxis-response-schema": json.dumps(schema)}


async def ask(running: Stack, headers: dict[str, str] | None = None, **body: Any) -> Given:
    """One request."""
    wanted = SERVICE if headers is None else headers
    async with http() as session, session.post(running.url + CHAT, json=chat("m", **body), headers=wanted) as answer:
        names = {name.lower(): value for name, value in answer.headers.items()}
        return Given(answer.status, names, await answer.read())


async def test_a_valid_answer_passes_as_the_backend_wrote_it(running: Stack) -> None:
    """Its bytes are those of a request that nobody looks at, and the strong backend is not asked."""
    says(running, cheap=GOOD)
    gated, plain = await ask(running, schema_header(PERSON)), await ask(running)
    assert gated.verdict == (200, "passed", "cheap")
    assert gated.text == GOOD
    assert plain.verdict == (200, None, "cheap")
    assert "x-kronaxis-attempts" not in gated.headers


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param('{"age": 36}', id="a required field is missing"),
        pytest.param('{"name": 7}', id="wrong type"),
        pytest.param('{"name": "Ada", "home": {"town": "London"}}', id="nested"),
        pytest.param('["Ada"]', id="an array"),
        pytest.param('{"name": "Ada"', id="no JSON"),
        pytest.param('{"name": "Ada", "name": "Bob"}', id="a field twice"),
        pytest.param('{"name": "Ada", "age": NaN}', id="NaN"),
        pytest.param('Sure! {"name": "Ada"}', id="text around it"),
    ],
)
async def test_a_bad_answer_is_replaced_by_the_fallbacks(running: Stack, bad: str) -> None:
    """Its header names who really answered; the model name is the fallback's own."""
    says(running, cheap=bad)
    given = await ask(running, schema_header(PERSON))
    assert given.verdict == (200, "fallback", "strong")
    assert given.text == BETTER
    assert given.headers["x-kronaxis-attempts"] == "2"
    assert json.loads(given.body)["model"] == "big"


async def test_fences_are_taken_off_before_parsing(running: Stack) -> None:
    """The client gets them as they came."""
    fenced = f"```json\n{GOOD}\n```"
    says(running, cheap=fenced)
    given = await ask(running, schema_header(PERSON))
    assert (given.verdict, given.text) == ((200, "passed", "cheap"), fenced)


async def test_an_array_fits_a_schema_of_arrays(running: Stack) -> None:
    """Whatever JSON value the schema is for; in base64 too."""
    says(running, cheap='[{"name": "Ada"}, {"name": "Bob"}]')
    inline = json.dumps({"type": "array", "items": {"type": "object", "required": ["name"]}})
    encoded = base64.b64encode(inline.encode()).decode()
    for value in (inline, encoded):
        given = await ask(running, SERVICE | {"x-kronaxis-response-schema": value})
        assert given.verdict == (200, "passed", "cheap")


async def test_the_schema_of_the_body_counts_too(running: Stack) -> None:
    """``response_format``, as clients of the API send it."""
    says(running, cheap='{"name": 7}')
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    assert (await ask(running, response_format=wanted)).verdict == (200, "fallback", "strong")


@pytest.mark.parametrize("schema", ['{"type": "no such type"}', '{"$ref": "http://127.0.0.1:1/s"}', "{", "7"])
async def test_a_schema_that_cannot_be_used_is_said_and_the_request_served(running: Stack, schema: str) -> None:
    """The request is still good."""
    says(running, cheap="anything")
    given = await ask(running, SERVICE | {"x-kronaxis-response-schema": schema})
    assert given.verdict == (200, "skipped", "cheap")
    assert given.headers["x-kronaxis-schema"] == "invalid"
    assert given.text == "anything"


async def test_without_a_schema_nothing_changes(running: Stack) -> None:
    """With ``sample_rate: 0``: no header, no wait."""
    says(running, cheap="anything")
    given = await ask(running)
    assert given.verdict == (200, None, "cheap")


async def test_a_held_stream_that_passes_is_released_as_a_stream(running: Stack) -> None:
    """Whole, ending in ``[DONE]``."""
    says(running, cheap=GOOD)
    given = await ask(running, schema_header(PERSON), stream=True)
    assert given.verdict == (200, "passed", "cheap")
    assert given.headers["content-type"].startswith("text/event-stream")
    assert given.text == GOOD


async def test_of_a_bad_stream_the_client_sees_nothing(running: Stack) -> None:
    """Only the fallback's stream, as server-sent events."""
    says(running, cheap='{"name": 7}')
    given = await ask(running, schema_header(PERSON), stream=True)
    assert given.verdict == (200, "fallback", "strong")
    assert given.text == BETTER
    assert b'\\"name\\": 7' not in given.body
    assert given.body.endswith(b"data: [DONE]\n\n")


async def test_an_error_of_the_cheap_backend_leads_to_the_fallback(running: Stack) -> None:
    """Where no other candidate is left."""
    running.sim_faults("cheap", status=500)
    for stream in (False, True):
        given = await ask(running, schema_header(PERSON), stream=stream)
        assert (given.verdict, given.text) == ((200, "fallback", "strong"), BETTER)


async def test_an_answer_that_nobody_can_better_is_given_as_failed(running: Stack) -> None:
    """The fallback's own, when it is an answer; else the cheap one."""
    says(running, cheap='{"name": 7}', strong='{"name": 8}')
    given = await ask(running, schema_header(PERSON))
    assert (given.verdict, given.text) == ((200, "failed", "strong"), '{"name": 8}')
    running.sim_faults("strong", status=500)
    given = await ask(running, schema_header(PERSON))
    assert (given.verdict, given.text) == ((200, "failed", "cheap"), '{"name": 7}')


async def test_usage_and_cost_of_both_calls_are_counted(running: Stack) -> None:
    """The client's ``usage`` is that of the answer it got."""
    names = (("cheap", "proxied"), ("strong", "fallback"))

    def costs() -> list[float]:
        return [running.metric("kronaxis_router_cost_usd_total", backend=name, kind=kind) for name, kind in names]

    says(running, cheap='{"name": 7}')
    before = costs()
    given = await ask(running, schema_header(PERSON))
    usage = json.loads(given.body)["usage"]
    spent = 9 * (usage["prompt_tokens"] + usage["completion_tokens"]) / 1e6
    await asyncio.to_thread(wait_until, lambda: costs()[1] > before[1], "the cost to be counted")
    cheap, strong = (after - earlier for after, earlier in zip(costs(), before, strict=True))
    assert strong == pytest.approx(spent)
    assert 0 < cheap < strong


async def test_a_client_that_leaves_ends_the_call_of_the_fallback(running: Stack) -> None:
    """Within a second, and nothing stays in flight."""
    says(running, cheap='{"name": 7}')
    running.sim_faults("strong", hang=True)
    task = asyncio.create_task(ask(running, schema_header(PERSON)))
    await asyncio.to_thread(wait_until, lambda: running.in_flight_of("strong") == 1, "the fallback to be asked")
    task.cancel()
    left = time.monotonic()
    await asyncio.to_thread(wait_until, lambda: running.sim_in_flight("strong") == 0, "the call to end", 2.0)
    assert time.monotonic() - left < 1.5


async def test_every_rescue_is_a_pair_in_the_file(running: Stack) -> None:
    """A thousand requests, fifty at a time, of which every second one is bad: each line parses."""
    file = running.folder / "pairs.jsonl"
    before = len(_lines(file))
    rescued = running.metric(GATE, result="fallback")
    says(running, cheap='{"name": 7}')
    limit = asyncio.Semaphore(50)
    bad, fine = schema_header(PERSON), schema_header({"type": "object"})

    async def one(number: int) -> tuple[int, str | None, str | None]:
        async with limit:
            return (await ask(running, bad if number % 2 else fine, content=f"number {number}")).verdict

    verdicts = await asyncio.gather(*(one(number) for number in range(1000)))
    assert {verdict for number, verdict in enumerate(verdicts) if number % 2 == 0} == {(200, "passed", "cheap")}
    assert {quality for _, quality, _ in verdicts} <= {"passed", "fallback", "failed"}
    rescues = int(running.metric(GATE, result="fallback") - rescued)
    assert rescues == sum(quality == "fallback" for _, quality, _ in verdicts) > 0
    await asyncio.to_thread(wait_until, lambda: len(_lines(file)) - before == rescues, "every pair to be written")
    pairs = [json.loads(line) for line in _lines(file)[before:]]
    assert {(pair["chosen"], pair["rejected"], pair["reason"], pair["rule"]) for pair in pairs} == {
        (BETTER, '{"name": 7}', "schema", "work")
    }
    assert running.metric(DROPPED) == 0


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


PATTERN = {"type": "string", "pattern": "^(a+)+$"}
EVIL = json.dumps("a" * 40 + "!")


def bomb(depth: int) -> dict[str, Any]:
    """Combinators that branch at each level."""
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [schema, schema]}
    return schema


async def test_a_hostile_schema_delays_nobody_else(running: Stack) -> None:
    """A pattern that backtracks, and combinators that branch: other requests are answered meanwhile."""
    says(running, cheap=EVIL)

    async def slowest_other(until: asyncio.Task[Any]) -> float:
        worst = 0.0
        while not until.done():
            began = time.monotonic()
            assert (await ask(running)).status == 200
            worst = max(worst, time.monotonic() - began)
        return worst

    await ask(running, schema_header({"type": "string"}))
    quiet = await slowest_other(asyncio.create_task(asyncio.sleep(0.5)))
    for schema in (PATTERN, bomb(6)):
        hostile = asyncio.create_task(ask(running, schema_header(schema)))
        worst = await slowest_other(hostile)
        assert hostile.result().status == 200
        assert worst < quiet + 0.5


async def test_a_reference_to_elsewhere_is_never_followed(running: Stack) -> None:
    """A listener counts who comes: nobody."""
    came = 0

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for reference in (f"http://127.0.0.1:{port}/s.json", "file:///etc/passwd"):
            given = await ask(running, schema_header({"$ref": reference}))
            assert given.headers["x-kronaxis-schema"] == "invalid"
    assert came == 0


async def test_when_all_answers_are_bad_an_error_can_be_asked_for() -> None:
    """502, and both answers are paid for."""
    with stack(config(more="  on_exhausted: error\n"), SIMS) as running:
        says(running, cheap='{"name": 7}', strong='{"name": 8}')
        given = await ask(running, schema_header(PERSON))
        assert (given.status, json.loads(given.body)["error"]["code"]) == (502, "quality_gate_failed")
        assert given.headers["x-kronaxis-quality"] == "failed"


async def test_both_at_once_takes_no_longer_than_the_fallback_alone() -> None:
    """A bad answer costs nothing then; a good one ends the other call."""
    with stack(config("parallel"), SIMS) as running:
        running.sim_faults("strong", content=BETTER, delay_s=1.0)
        says(running, cheap='{"name": 7}')
        alone, both = [], []
        for _ in range(3):
            began = time.monotonic()
            async with http() as session:
                url = f"http://127.0.0.1:{running.sim_ports['strong']}{CHAT}"
                async with session.post(url, json=chat("big")) as answer:
                    await answer.read()
            alone.append(time.monotonic() - began)
            began = time.monotonic()
            given = await ask(running, schema_header(PERSON))
            both.append(time.monotonic() - began)
            assert (given.verdict, given.text) == ((200, "fallback", "strong"), BETTER)
        assert min(both) < 1.1 * min(alone)
        says(running, cheap=GOOD)
        began = time.monotonic()
        assert (await ask(running, schema_header(PERSON))).verdict == (200, "passed", "cheap")
        assert time.monotonic() - began < 0.8
        await asyncio.to_thread(wait_until, lambda: running.in_flight() == 0, "the other call to end")


async def test_a_fallback_that_takes_half_a_minute_is_waited_for(running: Stack) -> None:
    """Plain and streamed: Envoy waits as long as the request may take."""
    says(running, cheap='{"name": 7}')
    running.sim_faults("strong", content=BETTER, delay_s=30.0)
    given = await asyncio.gather(*(ask(running, schema_header(PERSON), stream=stream) for stream in (False, True)))
    assert [item.verdict for item in given] == [(200, "fallback", "strong")] * 2
    assert [item.text for item in given] == [BETTER] * 2


async def test_a_session_keeps_the_answer_that_the_client_got() -> None:
    """The next turn goes on from the fallback's answer, not from the one that was replaced."""
    with (
        raw_backend() as raw,
        stack(
            config().replace("{cheap}", str(raw.port)),
            {"strong": SIMS["strong"]},
            server_extra="  sessions: {enabled: true}\n",
        ) as running,
    ):
        says(running, strong=BETTER)
        first = await ask(running, schema_header(PERSON) | {"x-kronaxis-session-create": "true"})
        assert first.verdict == (200, "fallback", "strong")
        await ask(running, SERVICE | {"x-kronaxis-session-id": first.headers["x-kronaxis-session-id"]}, content="more")
        sent = json.loads(raw.bodies[-1])["messages"]
        assert [message["content"] for message in sent] == ["Say hello.", BETTER, "more"]


def run_command(*command: str) -> int:
    """The exit code of a command."""
    return subprocess.run(command, check=False, capture_output=True).returncode


def small_disk(folder: Path) -> bool:
    """Mounts a disk of 64 KB at ``folder``, if that is allowed here."""
    folder.mkdir()
    return run_command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)) == 0


async def test_a_full_disk_harms_no_request_and_leaves_whole_lines(tmp_path: Path) -> None:
    """Pairs are dropped and counted; once there is room again they are written."""
    disk = tmp_path / "disk"
    if not small_disk(disk):
        pytest.skip("no right to mount a small disk")
    try:
        text = config().replace("pairs.jsonl", f"{disk}/pairs.jsonl")
        with stack(text, SIMS) as running:
            says(running, cheap='{"name": 7}', strong=BETTER)
            big = "All work and no play makes a dull router. " * 100
            for number in range(40):
                assert (await ask(running, schema_header(PERSON), content=f"{number} {big}")).status == 200
            await asyncio.to_thread(
                wait_until, lambda: running.metric(DROPPED, reason="disk") > 0, "pairs to be dropped"
            )
            lines = _lines(disk / "pairs.jsonl")
            assert len(lines) > 1
            assert all(json.loads(line)["chosen"] == BETTER for line in lines)
            assert len(running.log_events("dpo_failing")) == 1
            (disk / "pairs.jsonl").unlink()
            assert (await ask(running, schema_header(PERSON))).status == 200
            await asyncio.to_thread(wait_until, lambda: len(_lines(disk / "pairs.jsonl")) == 1, "a pair to be written")
    finally:
        await asyncio.to_thread(run_command, "umount", "--lazy", str(disk))


async def test_a_killed_router_leaves_a_file_of_whole_lines() -> None:
    """``kill -9`` under load and a new start: each line parses, and new ones follow."""
    with stack(config(), SIMS) as running:
        says(running, cheap='{"name": 7}', strong=BETTER)
        file = running.folder / "pairs.jsonl"
        load = asyncio.gather(*(ask(running, schema_header(PERSON)) for _ in range(60)), return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: bool(_lines(file)), "the first pair")
        running.router.kill()
        await load
        await asyncio.to_thread(running.start_router)
        await asyncio.to_thread(running.await_routed)
        count = len(_lines(file))
        assert (await ask(running, schema_header(PERSON))).verdict == (200, "fallback", "strong")
        await asyncio.to_thread(wait_until, lambda: len(_lines(file)) == count + 1, "one pair more")
        assert all(json.loads(line)["rejected"] == '{"name": 7}' for line in _lines(file))
        assert await asyncio.to_thread(run_command, *ROUTER_EXT, "dpo", "check", str(file)) == 0
