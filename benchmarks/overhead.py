"""What router_ext costs: processor time against the least code that routes, and added latency against no processor.

The last line is a JSON object with the ratios. Both processors run in turn behind the same Envoy with the same backend;
a ratio is the median over rounds.
"""

import asyncio
import dataclasses
import json
from statistics import median
from typing import Final

from benchmarks.load import Load, quantile, run
from benchmarks.rig import Rig, rig

ROUNDS: Final = 5
CONNECTIONS: Final = 16

STREAM_PERIOD_S: Final = 0.6

STREAM_TPS: Final = 2000
"""Tokens a second of one streamed answer: a fast engine. Of an answer written at once there is nothing to leave."""


def body(size: int, *, stream: bool = False, max_tokens: int = 4) -> bytes:
    """A chat request of about ``size`` bytes."""
    turns = max(1, size // 20_000)
    text = "The quick brown fox jumps over the lazy dog. " * (size // turns // 45 + 1)
    messages = [{"role": "user" if i % 2 == 0 else "assistant", "content": text[: size // turns]} for i in range(turns)]
    request = {"model": "sim", "messages": messages, "max_tokens": max_tokens, "stream": stream, "ignore_eos": True}
    # Without spaces, as the openai package sends it.
    return json.dumps(request, separators=(",", ":")).encode()


async def cpu_per_request_ms(bench: Rig, load: Load) -> float:
    """Processor milliseconds of one request, after a warm-up."""
    await run(dataclasses.replace(load, count=max(load.connections, load.count // 10)))
    before = bench.cpu_s()
    await run(load)
    await asyncio.sleep(0.2)
    return (bench.cpu_s() - before) * 1000 / load.count


async def compare_cpu(bench: Rig, size: int, count: int) -> float:
    """Median ratio of router_ext's processor time to the bare processor's."""
    ratios = []
    for _ in range(ROUNDS):
        figures = {}
        for kind in ("bare", "router_ext"):
            await bench.use(kind)
            figures[kind] = await cpu_per_request_ms(bench, Load(bench.port, body(size), count, CONNECTIONS))
        ratios.append(figures["router_ext"] / figures["bare"])
        print(f"{size:>7} bytes: bare {figures['bare']:.3f} ms, router_ext {figures['router_ext']:.3f} ms", flush=True)
    return median(ratios)


async def compare_streams(bench: Rig) -> float:
    """Processor time of a streamed answer of 1,000 tokens against one of 10, at the same rate of requests: a busy
    processor wakes up less often for each.
    """

    def paced(request: bytes) -> Load:
        return Load(bench.port, request, 320, CONNECTIONS, period_s=STREAM_PERIOD_S)

    await bench.use("router_ext")
    ratios = []
    for _ in range(ROUNDS):
        short, long = [
            await cpu_per_request_ms(bench, paced(body(1000, stream=True, max_tokens=tokens))) for tokens in (10, 1000)
        ]
        ratios.append(long / short)
        print(f"  stream: 10 tokens {short:.3f} ms, 1,000 tokens {long:.3f} ms", flush=True)
    return median(ratios)


async def added_latency_ms(bench: Rig) -> tuple[float, float]:
    """What router_ext adds to p50 and p99 at one connection: ingress against the egress listener, 4 KB bodies."""
    await bench.use("router_ext")
    request = body(4000)
    direct = Load(bench.egress, request, 1000, 1, headers=(("x-kronaxis-cluster", "backend-sim"),))
    routed = Load(bench.port, request, 1000, 1)
    p50, p99 = [], []
    for _ in range(ROUNDS):
        without, with_router = await run(direct), await run(routed)
        p50.append((quantile(with_router, 0.5) - quantile(without, 0.5)) * 1000)
        p99.append((quantile(with_router, 0.99) - quantile(without, 0.99)) * 1000)
        print(f"   added: p50 {p50[-1]:.2f} ms, p99 {p99[-1]:.2f} ms", flush=True)
    return median(p50), median(p99)


async def main() -> None:
    """Runs everything and prints the result."""
    async with rig() as bench:
        small = await compare_cpu(bench, 1000, 4000)
        large = await compare_cpu(bench, 400_000, 480)
        p50, p99 = await added_latency_ms(bench)
    async with rig(STREAM_TPS) as bench:
        stream = await compare_streams(bench)
    result = {
        "cpu_ratio_1kb": small,
        "cpu_ratio_400kb": large,
        "stream_ratio_1000_10": stream,
        "added_p50_ms_4kb": p50,
        "added_p99_ms_4kb": p99,
    }
    print(json.dumps({name: round(value, 3) for name, value in result.items()}))


if __name__ == "__main__":
    asyncio.run(main())
