"""Routing by time to first token against the real Envoy."""

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
rules:
  - {name: fast, match: {service: fast}, backends: [a, b], max_ttft_ms: 200}
  - {name: slow, match: {service: slow}, backends: [a, b]}
defaults: {fallback_chain: [a, b]}
"""


async def served_by(running: Stack, service: str, *, stream: bool = True) -> str:
    """The backend that answers a request of a service."""
    body = chat("m", max_tokens=3, stream=stream)
    async with http() as session:
        headers = {"x-kronaxis-service": service}
        async with session.post(running.url + CHAT, json=body, headers=headers) as answer:
            assert answer.status == 200
            await answer.read()
            return answer.headers["x-kronaxis-backend"]


def settle(running: Stack) -> None:
    """Waits until every request is settled, and its sample taken."""
    wait_until(lambda: running.in_flight() == 0, "the requests to be settled")


async def test_a_rule_leaves_out_backends_whose_first_tokens_are_late() -> None:
    """Nine samples are too few, the tenth counts; other rules go on; with nobody else left the limit is given up."""
    with stack(CONFIG, {"a": ["--model", "m"], "b": ["--model", "m"]}) as running:
        running.sim_faults("a", first_token_delay_s=0.4)
        settle(running)
        samples = int(running.metric("kronaxis_router_ttft_seconds_count", backend="a"))
        for _ in range(samples, 9):
            assert await served_by(running, "fast") == "a"
            settle(running)
        assert await served_by(running, "fast") == "a"
        settle(running)
        assert 400 <= running.metric("kronaxis_router_backend_ttft_p95_ms", backend="a") < 2000
        assert await served_by(running, "fast") == "b"
        assert await served_by(running, "slow") == "a"
        assert running.metric("kronaxis_router_sla_filtered_total", rule="fast", backend="a") == 1
        running.sims["b"].kill()
        wait_until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 0, "b to be down")
        assert await served_by(running, "fast", stream=False) == "a"
        assert running.metric("kronaxis_router_sla_missed_total", rule="fast") == 1
