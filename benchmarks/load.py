"""A small closed-loop HTTP/1.1 client: prebuilt requests over kept connections, one latency each."""

import asyncio
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """``count`` requests of ``body`` over ``connections`` connections to one port of the loopback address.

    ``period_s`` is the least time from one request of a connection to its next: with it the rate does not depend on how
    long an answer takes.
    """

    port: int
    body: bytes
    count: int
    connections: int
    headers: tuple[tuple[str, str], ...] = ()
    period_s: float = 0.0
    path: str = "/v1/chat/completions"

    def wire(self) -> bytes:
        """The bytes of one request."""
        lines = [f"POST {self.path} HTTP/1.1", "host: bench", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append(f"content-length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


async def run(load: Load) -> list[float]:
    """Latencies in seconds, sorted. Raises RuntimeError for any status but 200."""
    wire = load.wire()
    shares = [load.count // load.connections] * load.connections
    results = await asyncio.gather(*(_connection(load, wire, share) for share in shares))
    return sorted(latency for result in results for latency in result)


async def _connection(load: Load, wire: bytes, count: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port, limit=1 << 22)
    latencies = []
    for _ in range(count):
        started = time.perf_counter()
        writer.write(wire)
        await _read_answer(reader)
        latencies.append(time.perf_counter() - started)
        if load.period_s:
            await asyncio.sleep(load.period_s - latencies[-1])
    writer.close()
    return latencies


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode("latin-1"))
    lower = head.lower()
    if b"transfer-encoding: chunked" not in lower:
        await reader.readexactly(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
        return
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()


def quantile(sorted_values: list[float], q: float) -> float:
    """The q-quantile (0..1) by the nearest-rank method."""
    return sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))]
