"""What runs here: two simulated backends of one model, and router_ext with sessions."""

from typing import Final

from benchmarks.stack import Setup

_CONFIG: Final = """\
  kv_pinning: {enabled: true}
  sessions: {sessions}
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: sim, max_concurrent: 1000}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: sim, max_concurrent: 1000}
defaults: {fallback_chain: [a, b]}
"""


def setup(sessions: str, decode_tps: int) -> Setup:
    """``sessions`` is the section ``server.sessions`` in YAML's flow style, ``decode_tps`` the tokens a second of one
    answer.
    """
    speed = ("--decode-tps", str(decode_tps))
    return Setup(_CONFIG.replace("{sessions}", sessions), {"a": speed, "b": speed})
