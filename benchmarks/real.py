"""Pinning on real engines: two llama.cpp or vLLM servers behind a real Envoy, multi-turn chats, long system prompts.

The same conversations run twice, each time on fresh engines: once routed by router_ext, once without it, when Envoy
spreads them in turn. An odd number of clients with random think times keeps round robin from being sticky by accident.
The last line is a JSON object.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from benchmarks.load import quantile
from benchmarks.rig import SERVER
from router_ext.demo.child import Child, free_port
from router_ext.envoygen.binary import find_envoy

CONVERSATIONS: Final = 9
TURNS: Final = 4
CLIENTS: Final = 3
THINK_S: Final = 0.6
SYSTEM_WORDS: Final = 1900
"""About 2,500 tokens."""

_PYTHON: Final = sys.executable
_ROUTER_EXT: Final = (_PYTHON, "-m", "router_ext.cli.main")
_VLLM_VENV: Final = Path(".venv-vllm")

CONFIG: Final = (
    SERVER
    + """\
  kv_pinning: {{enabled: true}}
  queue_aware_routing: true
  balancing: {balancing}
backends:
  - {{name: a, url: "http://127.0.0.1:{a}", type: {type}, model_name: smollm2, max_concurrent: 64}}
  - {{name: b, url: "http://127.0.0.1:{b}", type: {type}, model_name: smollm2, max_concurrent: 64}}
defaults: {{fallback_chain: [a, b]}}
"""
)


@dataclass(frozen=True, slots=True)
class Engine:
    """How to run one kind of engine: ``argv`` lacks the port, ``core_option`` names the option that binds it to a core.

    ``start_s`` and ``stop_s`` are how long a start and a polite stop may take, in seconds.
    """

    backend_type: str
    argv: tuple[str, ...]
    core_option: str | None
    start_s: float
    stop_s: float

    def command(self, port: int, core: int) -> list[str]:
        """The command of one server."""
        return [*self.argv, "--port", str(port), *((self.core_option, str(core)) if self.core_option else ())]


ENGINES: Final = {
    "llama": Engine(
        "llamacpp",
        (_PYTHON, "-m", "router_ext.demo.llama_engine", "--ctx", "16384", "--parallel", "4"),
        core_option=None,
        start_s=60,
        stop_s=2,
    ),
    "vllm": Engine(
        "vllm",
        (
            *(str(_VLLM_VENV / "bin" / "python"), "-m", "benchmarks.vllm_engine", "serve"),
            *("--model", str(_VLLM_VENV / "smollm2")),
        ),
        core_option="--core",
        start_s=180,
        stop_s=20,
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One answered turn: time to first token in seconds, prompt tokens and those that the engine's cache held."""

    number: int
    ttft_s: float
    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Run:
    """All turns of one run and its wall time in seconds."""

    turns: list[Turn]
    wall_s: float

    @property
    def later_p90_s(self) -> float:
        """P90 of the time to first token of turns 2 and later."""
        return quantile(sorted(turn.ttft_s for turn in self.turns if turn.number > 1), 0.9)

    @property
    def cached_share(self) -> float:
        """Cached tokens over prompt tokens, of all turns."""
        return sum(turn.cached_tokens for turn in self.turns) / sum(turn.prompt_tokens for turn in self.turns)


def system_prompt(rng: random.Random) -> str:
    """A prompt that no engine has seen before."""
    words = ("river", "stone", "amber", "cloud", "market", "signal", "garden", "winter", "copper", "letter", "bridge")
    return " ".join(
        f"{rng.choice(words)}{rng.randrange(100)}" if i % 9 == 0 else rng.choice(words) for i in range(SYSTEM_WORDS)
    )


async def ask(session: aiohttp.ClientSession, url: str, messages: list[Any], number: int) -> tuple[Turn, str]:
    """One streamed turn."""
    request = {
        "model": "smollm2",
        "messages": messages,
        "max_tokens": 16,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    started, first = time.perf_counter(), 0.0
    text = ""
    usage: dict[str, Any] = {}
    async with session.post(url + "/v1/chat/completions", json=request) as answer:
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {await answer.text()}")
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            usage = event.get("usage") or usage
            for choice in event.get("choices", []):
                piece = choice["delta"].get("content") or ""
                first = first or (time.perf_counter() - started if piece else 0.0)
                text += piece
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Turn(number, first or time.perf_counter() - started, usage["prompt_tokens"], cached), text


async def converse(session: aiohttp.ClientSession, url: str, rng: random.Random) -> list[Turn]:
    """One conversation of several turns."""
    messages: list[Any] = [{"role": "system", "content": system_prompt(rng)}]
    turns = []
    for number in range(1, TURNS + 1):
        messages.append({"role": "user", "content": f"Question {number}: what is word {rng.randrange(1000)}?"})
        turn, text = await ask(session, url, messages, number)
        messages.append({"role": "assistant", "content": text})
        turns.append(turn)
        await asyncio.sleep(rng.random() * THINK_S)
    return turns


async def run_all(url: str, seed: int) -> Run:
    """Every conversation, by a few clients at once."""
    waiting = list(range(CONVERSATIONS))
    turns: list[Turn] = []
    started = time.perf_counter()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as session:

        async def client() -> None:
            while waiting:
                turns.extend(await converse(session, url, random.Random(f"{seed}-{waiting.pop()}")))

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return Run(turns, time.perf_counter() - started)


@asynccontextmanager
async def stack(engine: Engine, *, routed: bool, balancing: str) -> AsyncIterator[str]:
    """Fresh engines behind Envoy, with or without router_ext; the URL to ask."""
    with tempfile.TemporaryDirectory(prefix="rx") as name:
        folder = Path(name)
        ports = {key: free_port() for key in ("port", "egress", "admin", "envoy_admin", "a", "b")}
        config = folder / "router.yaml"
        config.write_text(CONFIG.format(**ports, folder=folder, balancing=balancing, type=engine.backend_type))
        await _generate(config)
        engines = [Child(key, engine.command(ports[key], i), folder / f"{key}.log") for i, key in enumerate("ab")]
        proxies = [Child("envoy", _envoy(folder), folder / "envoy.log")]
        if routed:
            proxies.append(Child("router_ext", (*_ROUTER_EXT, "serve", str(config)), folder / "router_ext.log"))
        try:
            # Envoy starts on engines that serve: an engine that comes up later would miss its share of the first turns.
            await _started(engines, [ports["a"], ports["b"]], engine.start_s)
            for child in proxies:
                child.start()
            url = f"http://127.0.0.1:{ports['port']}"
            await _serving(url, routed=routed)
            yield url
        finally:
            for child in reversed(proxies):
                child.stop(2.0)
            for child in engines:
                child.stop(engine.stop_s)


async def _generate(config: Path) -> None:
    made = await asyncio.create_subprocess_exec(
        *_ROUTER_EXT, "envoy-config", str(config), stdout=asyncio.subprocess.DEVNULL
    )
    if await made.wait():
        raise RuntimeError("no Envoy configuration")


def _envoy(folder: Path) -> list[str]:
    return [str(find_envoy()), "-c", str(folder / "envoy" / "bootstrap.yaml"), "--use-dynamic-base-id", "-l", "error"]


async def _started(engines: list[Child], ports: list[int], patience_s: float) -> None:
    """Start the engines and wait until each is healthy. Raises RuntimeError with the end of a log."""
    for child in engines:
        child.start()
    deadline = time.monotonic() + patience_s
    for child, port in zip(engines, ports, strict=True):
        while not await _healthy(port):
            if child.exit_code is not None or time.monotonic() > deadline:
                raise RuntimeError(f"engine {child.name} did not come up:\n{child.last_lines(40)}")
            await asyncio.sleep(0.1)


async def _healthy(port: int) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/health") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def _serving(url: str, *, routed: bool) -> None:
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    deadline = time.monotonic() + 60
    good = 0
    while good < 4:
        if time.monotonic() > deadline:
            raise RuntimeError("the stack did not come up")
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(url + "/v1/chat/completions", json=body) as answer,
            ):
                good += answer.status == 200 and ("x-kronaxis-backend" in answer.headers) == routed
        except aiohttp.ClientError:
            good = 0
        await asyncio.sleep(0.1)


async def main() -> None:
    """Both runs, a line each, and the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="llama", choices=sorted(ENGINES))
    parser.add_argument("--balancing", default="predicted_ttft", choices=["pin", "predicted_ttft"])
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="prompts must be new in each run")
    args = parser.parse_args()
    runs = {}
    for name in ("routed", "round robin"):
        async with stack(ENGINES[args.engine], routed=name == "routed", balancing=args.balancing) as url:
            run = runs[name] = await run_all(url, args.seed)
        figures = (
            f"TTFT p90 of turns 2+ {run.later_p90_s:.2f} s, cached {run.cached_share:.2f}, wall {run.wall_s:.0f} s"
        )
        print(f"{name:>12}: {figures}", flush=True)
    routed, robin = runs["routed"], runs["round robin"]
    result = {
        "ttft_p90_ratio": routed.later_p90_s / robin.later_p90_s,
        "cached_share": routed.cached_share,
        "cached_share_round_robin": robin.cached_share,
        "wall_ratio": routed.wall_s / robin.wall_s,
    }
    print(json.dumps({name: round(value, 3) for name, value in result.items()}))


if __name__ == "__main__":
    asyncio.run(main())
