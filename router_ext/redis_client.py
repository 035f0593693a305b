"""The client of a Redis or Valkey server, as both of its users need it."""

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from router_ext.model.secret import Secret


def redis_client(url: Secret, what: str, max_connections: int) -> Redis:
    """A client without time limits and retries of its own. Raises ValueError for a bad URL, naming ``what`` it is of.

    Connections are made when they are needed, and anew after a failure; one that the server closed is not used.
    """
    try:
        pool = ConnectionPool.from_url(
            url.reveal(),
            max_connections=max_connections,
            protocol=2,
            driver_info=None,
            # The deadline of the call is the only one: two that end together may cost a cancellation.
            socket_timeout=None,
            socket_connect_timeout=None,
            # What is repeated after a broken connection may count twice.
            retry=Retry(NoBackoff(), 0),
        )
        pool.connection_class(**pool.connection_kwargs)  # Not used: it shows options that do not exist.
    except (TypeError, ValueError):
        # Not the cause: it may quote a part of the password.
        raise ValueError(f"the URL of {what} ({url.source}) is not valid") from None
    return Redis.from_pool(pool)
