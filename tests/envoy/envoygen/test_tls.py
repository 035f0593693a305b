"""Connections to https backends: who is believed."""

import ssl
from pathlib import Path

import pytest
import trustme

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, stand

CHAT = "/v1/chat/completions"
AUTHORITY = trustme.CA()


@pytest.fixture(autouse=True)
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the test's own authority the only trusted one."""
    bundle = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))


def _backend(host: str, name: str, authority: trustme.CA = AUTHORITY) -> FakeBackend:
    """A backend at ``host`` whose certificate is for ``name``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return FakeBackend("a", host=host, tls=context)


async def _status(logs: Path, backend: FakeBackend) -> tuple[int, int]:
    """Statuses of the same request, routed and through the fail-open cluster."""
    async with stand(logs, backend, processor=FakeProcessor(Plan({"x-kronaxis-cluster": "backend-a"}))) as s:
        routed = (await s.post(CHAT)).status
        s.processor.plan = Plan()
        return routed, (await s.post(CHAT)).status


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_certificate_for_the_host_is_accepted(host: str, tmp_path: Path) -> None:
    """A name is found among the certificate's DNS names, an address among its IP addresses."""
    backend = _backend(host, host)
    assert await _status(tmp_path, backend) == (200, 200)
    assert backend.seen[0]["host"] == f"{host}:{backend.port}"


@pytest.mark.parametrize(
    ("host", "name"), [("localhost", "other.example"), ("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "localhost")]
)
async def test_a_certificate_for_another_host_is_refused(host: str, name: str, tmp_path: Path) -> None:
    """No request reaches the backend."""
    backend = _backend(host, name)
    assert await _status(tmp_path, backend) == (503, 503)
    assert backend.seen == []


async def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    """The right name is not enough."""
    assert await _status(tmp_path, _backend("localhost", "localhost", trustme.CA())) == (503, 503)
