"""One routing question, as filters and scorers know it."""

from router_ext.model.asked import Asked

__all__ = ["Asked"]
