"""Engines to try router_ext on: a simulated vLLM server and a llama.cpp server on the CPU."""
