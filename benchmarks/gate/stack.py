"""What runs here: a cheap backend whose answers are gated, the fallback, and a backend with the pace of an engine."""

from typing import Final

from benchmarks.stack import Setup

FALLBACK_MODEL: Final = "strong"
PACED_MODEL: Final = "paced"
"""What a request asks for to reach these two; ``sim`` is the cheap backend's."""

_AT_ONCE: Final = ("--decode-tps", "1000000000")

_PACE_TPS: Final = "400"
"""A stream of 80 tokens takes 0.2 s."""

_CONFIG: Final = """\
backends:
  - {name: cheap, url: "http://127.0.0.1:{cheap}", type: vllm, model_name: sim, max_concurrent: 1000}
  - {name: strong, url: "http://127.0.0.1:{strong}", type: vllm, model_name: strong, max_concurrent: 1000}
  - {name: paced, url: "http://127.0.0.1:{paced}", type: vllm, model_name: paced, max_concurrent: 1000}
defaults: {fallback_chain: [cheap, strong, paced]}
quality_gate: {enabled: true, mode: {mode}, fallback_backend: strong, sample_rate: 0}
"""


def setup(mode: str) -> Setup:
    """``mode`` is that of the gate. Only requests with a schema are gated."""
    backends = {
        "cheap": ("--model", "sim", *_AT_ONCE),
        "strong": ("--model", FALLBACK_MODEL, *_AT_ONCE),
        "paced": ("--model", PACED_MODEL, "--decode-tps", _PACE_TPS),
    }
    return Setup(_CONFIG.replace("{mode}", mode), backends)
