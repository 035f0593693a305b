"""The admin HTTP API on loopback."""
