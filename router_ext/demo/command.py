"""``router-ext demo``: the whole stack on this machine, or a scripted tour of it."""

import argparse
import asyncio
import json
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from router_ext.demo import operating, tour
from router_ext.demo.stack import EngineKind, Ports, Stack
from router_ext.demo.visitor import Seen, Step, walk

TOURS: Final[Mapping[str, Sequence[Step]]] = {"requests": tour.STEPS, "operating": operating.STEPS}

INTRODUCTION: Final = """
  clients   {stack.ingress}/v1        Envoy; give this to any OpenAI client as its base URL
  admin     {stack.admin}/health   also /ready and /metrics
  envoy     http://127.0.0.1:{stack.ports.envoy_admin}          Envoy's own admin page
  config    {stack.config}          edit it: rules and backends change within 5 s
  logs      {logs}

Try:
  curl -i {stack.ingress}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "small", "messages": [{{"role": "user", "content": "Hello!"}}], "max_tokens": 32}}'

Look at the headers x-kronaxis-backend and x-kronaxis-rule. Add -H 'x-kronaxis-service: premium' and the rule sends you
to the strong backend. Kill router_ext (pid {router_pid}) and ask again: Envoy goes on without it.
Ctrl-C stops everything.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The engines, the tour, and where files go."""
    text = "the small model's engines: llama.cpp, or simulated (default: llama)"
    parser.add_argument("--engine", type=EngineKind, choices=list(EngineKind), default=EngineKind.LLAMA, help=text)
    text = "take a scripted tour and exit 1 on a wrong answer: of requests, or of operating the router"
    parser.add_argument("--check", nargs="?", const="requests", choices=list(TOURS), metavar="TOUR", help=text)
    parser.add_argument("--folder", type=Path, default=Path(".demo"), help="configuration and logs (default: .demo)")
    parser.add_argument("--envoy-dir", type=Path, default=Path("envoy"), help="Envoy's files (default: envoy)")
    text = "print one JSON object: with --check the steps at the end, else the addresses once all is served"
    parser.add_argument("--json", action="store_true", help=text)


def main(args: argparse.Namespace) -> int:
    """0 when stopped by Ctrl-C or after a good tour, 1 after a wrong answer. Raises DemoError when something does not
    start.
    """
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    stop = _stop_signal()
    folder, envoy_dir = args.folder.absolute(), args.envoy_dir.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    stack = Stack(args.engine, folder, envoy_dir, Ports.pick())

    def note(line: str) -> None:
        if not args.json:
            print(line, flush=True)

    try:
        note(f"Starting Envoy, router_ext and three engines ({args.engine}) ...")
        await stack.start()
        note(f"Serving after {time.monotonic() - started:.1f} s.")
        if args.check:
            return 0 if await _tour(stack, args.check, args.json) else 1
        _introduce(stack, folder / "logs", args.json)
        await stop.wait()
    finally:
        stack.stop()
        note(f"Stopped after {time.monotonic() - started:.1f} s.")
    return 0


async def _tour(stack: Stack, name: str, as_json: bool) -> bool:
    if not as_json:
        return await walk(stack, TOURS[name], lambda seen: print(seen, flush=True))
    steps: list[Seen] = []
    right = await walk(stack, TOURS[name], steps.append)
    print(json.dumps({"right": right, "steps": [asdict(step) for step in steps]}), flush=True)
    return right


def _introduce(stack: Stack, logs: Path, as_json: bool) -> None:
    router_pid = stack.children["router"].pid
    if not as_json:
        print(INTRODUCTION.format(stack=stack, logs=logs, router_pid=router_pid), flush=True)
        return
    envoy = f"http://127.0.0.1:{stack.ports.envoy_admin}"
    where = {"clients": f"{stack.ingress}/v1", "admin": stack.admin, "envoy": envoy}
    print(json.dumps({**where, "config": str(stack.config), "logs": str(logs), "router_pid": router_pid}), flush=True)


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
