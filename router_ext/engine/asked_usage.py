"""Whether the router asks a backend for the token counts that a stream's client did not ask for.

Then it has to bring the answer itself: the event that reports them is not for the client.
"""

from router_ext.config.sections import DEFAULT_SERVICE, RouterConfig, UsageMode
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.spend import OTHER
from router_ext.model.backend import Backend
from router_ext.model.request import TEXT_PATHS
from router_ext.payload.stream_options import ask_for_usage


def usage_of(config: RouterConfig, service: str) -> UsageMode:
    """Where the token counts of a service's streams come from: as the budget that it is under says, else the server,
    else exactly where there is such a budget.
    """
    entries = {budget.service: budget for budget in config.budgets}
    counted = service if service in config.named_services else OTHER
    budget = entries.get(counted) or entries.get(DEFAULT_SERVICE)
    said = config.server.usage if budget is None else budget.usage or config.server.usage
    return said or (UsageMode.ESTIMATE if budget is None else UsageMode.EXACT)


def look(config: RouterConfig, exchange: OpenExchange) -> bool:
    """Notes in a new exchange whether its backends are asked; True when the one that it goes to is."""
    request, kept = exchange.attempt.decision.request, exchange.kept
    # The streams of the other APIs report their usage as they are.
    if kept is None or not request.stream or request.path not in TEXT_PATHS:
        return False
    if usage_of(config, request.caller.service) is UsageMode.EXACT:
        exchange.wants_usage = ask_for_usage(kept.body.envelope) is not None
    return asks(exchange, exchange.attempt.slot.state.backend)


def asks(exchange: OpenExchange, backend: Backend) -> bool:
    """True when the router asks ``backend`` for them. Others get the body as the client wrote it."""
    return exchange.wants_usage and backend.traits.takes_stream_options
