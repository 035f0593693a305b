"""The ledger: what calls cost, kept over restarts in a file."""
