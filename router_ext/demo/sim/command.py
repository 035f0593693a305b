"""The arguments and the main function of ``router-ext sim-backend``."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence

from router_ext.demo.sim.server import serve
from router_ext.demo.sim.settings import SimSettings

_FLOATS = ("prefill_tps", "decode_tps")
_INTS = ("max_num_seqs", "cache_blocks", "block_size", "max_model_len", "seed")
_HELP = {
    "prefill_tps": "prompt tokens a second that are computed (cached ones are free)",
    "decode_tps": "tokens a second that one answer grows by",
    "max_num_seqs": "requests that run at the same time; the others wait",
    "cache_blocks": "size of the prefix cache in blocks",
    "block_size": "tokens in a block",
    "max_model_len": "longest prompt in tokens",
    "seed": "changes the words of all answers",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the simulated engine to a parser."""
    defaults = SimSettings()
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, required=True, help="port to listen on, 0 for a free one")
    parser.add_argument("--model", default="sim", help="the model's name")
    parser.add_argument("--alias", action="append", default=[], help="another name of the model (repeatable)")
    parser.add_argument("--lora", action="append", default=[], help="an adapter's name (repeatable)")
    for name in (*_FLOATS, *_INTS):
        default = getattr(defaults, name)
        option = f"--{name.replace('_', '-')}"
        kind = float if name in _FLOATS else int
        parser.add_argument(option, type=kind, default=default, help=f"{_HELP[name]} (default: {default:g})")
    parser.add_argument("--max-queue", type=int, default=None, help="waiting requests before 503 (default: no limit)")
    parser.add_argument("--api-key", default="", help="key that requests under /v1 must carry")
    parser.add_argument("--stable-ids", action="store_true", help="equal request bytes give equal answer bytes")
    parser.add_argument("--multimodal", action="store_true", help="accept images in messages")


def settings_from(args: argparse.Namespace) -> SimSettings:
    """The settings that parsed arguments describe. Raises ValueError."""
    numbers = {name: getattr(args, name) for name in (*_FLOATS, *_INTS)}
    return SimSettings(
        model=args.model,
        aliases=tuple(args.alias),
        loras=tuple(args.lora),
        max_queue=args.max_queue,
        api_key=args.api_key,
        stable_ids=args.stable_ids,
        multimodal=args.multimodal,
        record=False,
        **numbers,
    )


def main(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM. Returns 0, or 2 when the settings or the address cannot be used."""
    try:
        asyncio.run(_serve_until_signal(settings_from(args), args.host, args.port))
    except (ValueError, OSError) as error:
        print(f"sim-backend: {error}", file=sys.stderr)
        return 2
    return 0


def run_sim(argv: Sequence[str]) -> int:
    """``main`` with arguments as they stand on a command line."""
    parser = argparse.ArgumentParser(prog="router-ext sim-backend", description="A simulated vLLM server.")
    add_arguments(parser)
    return main(parser.parse_args(argv))


async def _serve_until_signal(settings: SimSettings, host: str, port: int) -> None:
    def ready(bound: int) -> None:
        print(f"simulated engine {settings.model!r} on http://{host}:{bound}", flush=True)

    server = asyncio.ensure_future(serve(settings, host, port, ready))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await server
