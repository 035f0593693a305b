"""The project's own wire contract, generated from ``proto/router_ext/v1`` at build."""
