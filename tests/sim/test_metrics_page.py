"""The simulated metrics page beside the recorded ones."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from router_ext.demo.sim.server import SimServer
from router_ext.demo.sim.settings import SimSettings
from tests.captures import FOLDER, load_response
from tests.sim.wire import chat, eventually, get, post

PATH = "/v1/chat/completions"
LOADED = (FOLDER / "vllm" / "metrics_under_load.txt").read_text()


async def page(sim: SimServer) -> str:
    """The text of the page."""
    return (await get(sim.port, "/metrics")).body.decode()


def series(text: str) -> dict[str, float]:
    """Every sample line: name and labels, value."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def comments(text: str) -> set[str]:
    """Every HELP and TYPE line."""
    return {line for line in text.splitlines() if line.startswith("#")}


async def test_every_name_label_and_help_text_is_on_the_recorded_page_too() -> None:
    """With the recorded model name; the cache configuration is the one series whose labels carry sizes."""
    async with SimServer(SimSettings(model="smollm2")) as sim:
        text = await page(sim)
    assert comments(text) - comments(LOADED) == set()
    unknown = set(series(text)) - set(series(LOADED))
    assert {name for name in unknown if not name.startswith("vllm:cache_config_info{")} == set()


async def test_the_content_type_is_the_recorded_one() -> None:
    """Prometheus text format 1.0.0."""
    async with SimServer() as sim:
        answer = await get(sim.port, "/metrics")
    assert answer.headers["content-type"] == load_response("vllm", "get_metrics_idle").headers["content-type"]


async def test_the_page_is_valid_exposition_format() -> None:
    """The reference parser reads it."""
    async with SimServer() as sim:
        families = list(text_string_to_metric_families(await page(sim)))
    assert "vllm:num_requests_waiting" in {family.name for family in families}


async def test_running_and_waiting_requests_show_at_once_and_go_again() -> None:
    """One slot, two requests: one runs, one waits; both look-alikes agree."""
    async with SimServer(SimSettings(decode_tps=10, max_num_seqs=1)) as sim:
        asks = [asyncio.ensure_future(post(sim.port, PATH, chat(stream=True))) for _ in range(2)]
        await eventually(lambda: sim.engine.waiting == 1)
        busy = series(await page(sim))
        for ask in asks:
            ask.cancel()
        await eventually(lambda: sim.engine.running == 0)
        idle = series(await page(sim))
    labels = 'engine="0",model_name="sim"'
    running, waiting = f"vllm:num_requests_running{{{labels}}}", f"vllm:num_requests_waiting{{{labels}}}"
    assert (busy[running], busy[waiting]) == (1.0, 1.0)
    assert busy[f'vllm:num_requests_waiting_by_reason{{{labels},reason="capacity"}}'] == 1.0
    assert (idle[running], idle[waiting], idle[f"vllm:kv_cache_usage_perc{{{labels}}}"]) == (0.0, 0.0, 0.0)


async def test_tokens_and_cache_hits_are_counted() -> None:
    """Two equal prompts of 166 tokens, 160 of them in whole blocks, 3 tokens of answer each."""
    async with SimServer(SimSettings(prefill_tps=1e9)) as sim:
        for _ in range(2):
            await post(sim.port, PATH, chat("x" * 640, max_tokens=3))
        seen = series(await page(sim))
    labels = '{engine="0",model_name="sim"}'
    assert seen[f"vllm:prompt_tokens_total{labels}"] == 332.0
    assert seen[f"vllm:prefix_cache_queries_total{labels}"] == 332.0
    assert seen[f"vllm:prefix_cache_hits_total{labels}"] == 160.0
    assert seen[f"vllm:generation_tokens_total{labels}"] == 6.0
    assert seen[f"vllm:time_to_first_token_seconds_count{labels}"] == 2.0
