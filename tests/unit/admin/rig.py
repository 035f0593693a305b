"""The admin application behind an HTTP client, with two sessions."""

import json
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.new_session import SessionDesk
from router_ext.admin.sessions import session_routes
from router_ext.admin.status import Status
from router_ext.config.sections import Server
from router_ext.model.secret import Secret
from router_ext.model.session import Session, SessionMeta
from router_ext.ports import SessionStore
from tests.fakes.audit import RecordingAudit
from tests.fakes.clock import FakeClock
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.telemetry import RecordingTelemetry

OLD = "sess_00000000-0000-4000-8000-00000000000a"
NEW = "sess_00000000-0000-4000-8000-00000000000b"
OWNER = "0f" * 32
CONTENT = b'{"role":"user","content":"hunter2"}'
TOKEN = "t0ken-of-the-test"
NOW_S = 1_700_000_200.0


def filled_store() -> FakeSessionStore:
    """Two sessions of one owner; ``NEW`` was used last."""
    metas = (
        SessionMeta(OLD, OWNER, 1_700_000_000.0, 1_700_000_060.5, turns=2, tokens=90, bytes=700),
        SessionMeta(NEW, OWNER, 1_700_000_100.0, 1_700_000_100.0, turns=1, tokens=0, bytes=35),
    )
    return FakeSessionStore({meta.id: Session(meta, (CONTENT,)) for meta in metas})


class AdminRig:
    """Without a token, and reachable from this machine only, unless told otherwise."""

    def __init__(
        self,
        store: SessionStore | None = None,
        token: str = "",
        *,
        exposed: bool = False,
        server: Server | None = None,
    ) -> None:
        self.telemetry = RecordingTelemetry()
        self.audit = RecordingAudit()
        limits = server or Server()
        desk = SessionDesk(lambda: store, lambda: limits, self.telemetry, self.audit, FakeClock(wall_s=NOW_S))
        status = Status(
            snapshot=dict, decisions=list, is_ready=lambda: True, uptime_s=lambda: 1.0, registry=CollectorRegistry()
        )
        access = Access(Secret(token) if token else None, exposed=exposed)
        app = admin_app(
            status,
            access,
            session_routes(lambda: desk),
            audit=self.audit,
            max_conversation_bytes=lambda: limits.max_body_bytes,
        )
        self.client = TestClient(app, base_url="http://127.0.0.1")

    def ask(
        self, target: str, method: str = "GET", authorization: str | None = None, body: object = None
    ) -> tuple[int, Any]:
        """Status and body of an answer."""
        headers = {} if authorization is None else {"authorization": authorization}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["content-type"] = "application/json"
        answer = self.client.request(method, target, headers=headers, content=content)
        return answer.status_code, answer.json() if "json" in answer.headers["content-type"] else answer.text

    def error(
        self, target: str, method: str = "GET", authorization: str | None = None, body: object = None
    ) -> tuple[int, str]:
        """Status and code of a refusal, which must have the whole form of an error."""
        status, answer = self.ask(target, method, authorization, body)
        assert set(answer["error"]) - {"problems"} == {"message", "type", "param", "code"}
        return status, answer["error"]["code"]
