"""The way to other routers: Redis publish/subscribe."""
