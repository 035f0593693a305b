"""Decisions as the project's own contract has them: messages of ``proto/router_ext/v1``, and back."""
