"""Which way a request's answer takes when the router brings it itself."""

from collections.abc import AsyncGenerator

from router_ext.config.sections import RouterConfig
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.gated_relay import GatedRelay
from router_ext.engine.held import read_body
from router_ext.engine.relay import Relay
from router_ext.engine.tries import RelayTools
from router_ext.stream.effects import Relayed
from router_ext.stream.events import ResponseHeaders


def relayed(
    exchange: OpenExchange | None, config: RouterConfig, tools: RelayTools, seen: ResponseHeaders
) -> AsyncGenerator[Relayed]:
    """The answer in place of the one that begins with ``seen``; nothing when that one must do."""
    if exchange is None:
        return _nothing()
    if not exchange.relay_first:
        tools.attempts.pause(exchange.attempt, seen.status, seen.retry_after)
    if exchange.kept is None:
        return _nothing()
    if exchange.gate is not None and not exchange.gate.observes:
        return GatedRelay(exchange, exchange.kept, config, tools).parts(exchange.gate)
    parts = Relay(exchange, exchange.kept, config, tools).parts(None if exchange.relay_first else seen)
    if exchange.gate is None:
        return parts
    return tools.gate.observed(exchange.gate, parts, read_body, config.server.max_body_bytes)


async def _nothing() -> AsyncGenerator[Relayed]:
    return
    yield
