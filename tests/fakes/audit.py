"""An audit that remembers what it was told."""

from collections.abc import Mapping
from typing import Any


class RecordingAudit:
    """Implements ``admin.audit.AuditSink``."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def admin_change(self, action: str, result: str, about: Mapping[str, object]) -> None:
        """Keeps it."""
        self.told.append({"action": action, "result": result, **about})

    @property
    def results(self) -> list[tuple[str, str]]:
        """Actions and how they ended."""
        return [(item["action"], item["result"]) for item in self.told]
