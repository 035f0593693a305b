"""Routing: which backend serves a request. Filter, score, pick, over a frozen snapshot; no I/O, no clock."""
