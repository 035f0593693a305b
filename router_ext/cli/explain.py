"""``router-ext explain``: what would become of a request, and why."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry

from router_ext.cli.configuration import (
    EXIT_BAD_CONFIG,
    add_json_argument,
    add_workers_argument,
    default_config,
    load_or_explain,
)
from router_ext.cli.explained import print_explanation
from router_ext.cli.failure import EXIT_BAD_CALL, CommandError, print_json
from router_ext.cli.running_router import RouterRefusedError, RunningRouter, decisions_at, token_note
from router_ext.clock import SystemClock
from router_ext.config.sections import RouterConfig
from router_ext.decisions.events import message_of_explanation
from router_ext.decisions.record import json_of_message
from router_ext.dispatch.egress import EgressClient
from router_ext.engine.engine import Engine
from router_ext.engine.explaining import request_head
from router_ext.engine.surroundings import Surroundings
from router_ext.model.request import Api
from router_ext.model.snapshot import Health
from router_ext.schemas.court import SchemaCourt
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore
from router_ext.stream.events import RequestHead
from router_ext.telemetry.log import get_logger
from router_ext.telemetry.metrics import Metrics
from router_ext.telemetry.recorder import Recorder
from router_ext.v1 import decisions_pb2 as pb

EPILOG = f"""\
Without --live the configuration is asked: every backend is healthy and idle, nothing is spent or pinned, and no
session is known. With --live the running router is asked at the configuration's server.processor_address; of several
workers the first one that answers. {token_note()}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The body, what belongs to it, and whom to ask."""
    parser.epilog = EPILOG
    parser.add_argument("body", metavar="FILE", help="the request's body; - is standard input")
    parser.add_argument("--config", type=Path, default=default_config(), metavar="FILE", help="configuration file")
    add_workers_argument(parser)
    parser.add_argument("--path", default=Api.CHAT.value, help=f"the request's path ({Api.CHAT})")
    parser.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="a header of the request; repeatable"
    )
    parser.add_argument("--live", action="store_true", help="ask the running router")
    add_json_argument(parser)


def main(args: argparse.Namespace) -> int:
    """0, or 2 for a configuration that cannot be used. Raises CommandError and ConfigError."""
    try:
        headers = read_headers(args.header)
        head = request_head(args.path, headers)
        body = sys.stdin.buffer.read() if args.body == "-" else Path(args.body).read_bytes()
    except (OSError, ValueError) as error:
        raise CommandError(str(error), EXIT_BAD_CALL, "bad_request") from None
    loaded = load_or_explain(args.config, args.workers, as_json=args.json)
    if loaded is None:
        return EXIT_BAD_CONFIG
    if args.live:
        request = pb.ExplainRequest(path=args.path, headers=headers, body=body)
        explained = asyncio.run(explain_live(RunningRouter.of(loaded.config.server), request))
    else:
        explained = asyncio.run(explain_offline(loaded.config, head, body))
    if args.json:
        print_json(json_of_message(explained))
    else:
        print_explanation(explained)
    return 0


def read_headers(lines: Iterable[str]) -> Mapping[str, str]:
    """Headers as ``curl`` takes them. Raises ValueError for a line without a colon, and for a name that comes twice."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError("a header is written as 'NAME: VALUE'")
        if name.strip().lower() in headers:
            raise ValueError("each header may be given once")
        headers[name.strip().lower()] = value.strip()
    return headers


async def explain_live(router: RunningRouter, request: pb.ExplainRequest) -> pb.ExplainResponse:
    """The answer of the first process that is there. Raises RouterRefusedError."""
    for address in router.addresses:
        try:
            async with decisions_at(address) as decisions:
                answer: pb.ExplainResponse = await decisions.Explain(request, metadata=router.metadata)
                return answer
        except RouterRefusedError as error:
            if not error.away or address == router.addresses[-1]:
                raise
    raise AssertionError("a router has an address")


async def explain_offline(config: RouterConfig, head: RequestHead, body: bytes) -> pb.ExplainResponse:
    """The answer of a router that was started just now, all of whose backends are healthy."""
    return message_of_explanation(await idle_engine(config).explain(head, body))


def idle_engine(config: RouterConfig) -> Engine:
    """An engine that nobody has asked anything, and that asks nobody."""
    clock, limits = SystemClock(), config.server.sessions
    telemetry = Recorder(Metrics(CollectorRegistry()), get_logger(), time.time, config.named_services)
    store = MemoryStore(StoreLimits(limits.ttl_s, limits.max_sessions, limits.max_bytes), lambda _: None)
    outside = telemetry, clock, EgressClient(config.server.egress_port), store
    engine = Engine(config, *outside, id_prefix="offline", around=Surroundings(judge=SchemaCourt()))
    for backend in config.backends:
        engine.set_health(backend.name, Health.HEALTHY)
    return engine
