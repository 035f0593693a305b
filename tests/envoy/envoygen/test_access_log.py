"""What the access logs say, and what they must not."""

from pathlib import Path

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, eventually, stand

CHAT = "/v1/chat/completions"
DECISION = {"id": "d-1", "rule": "r", "backend": "a", "service": "billing"}


async def test_the_processor_gets_an_entry_for_every_exchange(tmp_path: Path) -> None:
    """The gRPC entry names the cluster and the route, and carries the processor's own metadata back."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-a"}, metadata=DECISION))
    async with stand(tmp_path, FakeBackend("a"), processor=processor) as s:
        await s.post(CHAT)
        await eventually(lambda: bool(processor.log_entries), "access log entry", 2)
    assert processor.log_names == ["router_ext.ingress"]
    entry = processor.log_entries[0]
    common = entry.common_properties
    assert (common.upstream_cluster, common.route_name) == ("backend-a", "routed")
    assert dict(common.metadata.filter_metadata["router_ext"].items()) == DECISION
    assert (entry.response.response_code.value, common.response_flags.ByteSize()) == (200, 0)
    assert common.time_to_last_downstream_tx_byte.ToTimedelta().total_seconds() > 0


async def test_the_entry_of_a_failure_has_envoys_flags(tmp_path: Path) -> None:
    """A refused connection."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-down"}))
    async with stand(tmp_path, unstarted=(FakeBackend("down"),), processor=processor) as s:
        await s.post(CHAT)
        await eventually(lambda: bool(processor.log_entries), "access log entry", 2)
    assert processor.log_entries[0].common_properties.response_flags.upstream_connection_failure is True


async def test_a_json_line_has_the_decision_and_no_secret(tmp_path: Path) -> None:
    """No query string and no header beside the request id is written."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-a"}, metadata=DECISION))
    secrets = {"authorization": "Bearer sk-canary-2", "x-api-key": "sk-canary-3"}
    async with stand(tmp_path, FakeBackend("a"), processor=processor) as s:
        await s.post(CHAT + "?key=sk-canary-1", **secrets)
        await s.post(CHAT, at=s.egress, **{"x-kronaxis-cluster": "backend-a"})
    ingress, egress = s.envoy.access_log()
    expected = {"log": "router_ext.ingress", "method": "POST", "path": CHAT, "status": 200, "flags": "-"}
    assert expected.items() <= ingress.items()
    assert DECISION.items() <= ingress.items()
    assert (ingress["route"], ingress["upstream_cluster"]) == ("routed", "backend-a")
    assert (egress["log"], egress["route"]) == ("router_ext.egress", "egress")
    assert "sk-canary" not in s.envoy.access_log_path.read_text()
