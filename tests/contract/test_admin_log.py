"""What a router logs of changes."""

from tests.contract.admin_process import TOKEN, admin_process

DOUBT = '"event":"config",'


def test_a_doubt_about_the_configuration_is_logged_once() -> None:
    """At the start, or at the change that brings it; not at each change again."""
    free = {"cost_input_1m": 0, "cost_output_1m": 0}
    spec = {"name": "c", "url": "http://127.0.0.1:9", "type": "vllm", "model_name": "m", **free}
    with admin_process({"ROUTER_API_TOKEN": TOKEN, "ROUTER_ALLOW_PRIVATE_BACKENDS": "true"}) as running:
        doubts = running.log.count(DOUBT)
        assert doubts > 0
        assert running.ask("/api/backends/b/drain", "POST")[0] == 200
        assert running.log.count(DOUBT) == doubts
        assert running.ask("/api/backends", "POST", spec)[0] == 201
        assert running.log.count(DOUBT) == doubts + 1
        assert "backend 'c' is used nowhere" in running.log
