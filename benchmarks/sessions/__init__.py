"""Sessions behind a real Envoy: what a turn uploads and waits for, what a store takes, and what a kill loses."""
