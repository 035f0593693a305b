"""A simulated vLLM server: real sockets, vLLM's shapes, deterministic words, a timing model in place of a GPU."""
