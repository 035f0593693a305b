"""router_ext: an LLM router for Envoy, as an external processor."""

from router_ext.version import __version__

__all__ = ["__version__"]
