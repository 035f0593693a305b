"""Names of files."""

from pathlib import Path

import pytest

from router_ext.ledger.paths import ledger_path, lock_path


@pytest.mark.parametrize(
    ("worker", "name"), [(None, "ledger.sqlite"), (0, "ledger.w0.sqlite"), (2, "ledger.w2.sqlite")]
)
def test_each_of_several_workers_has_a_ledger_of_its_own(worker: int | None, name: str) -> None:
    """One alone has a file without a number. Each has a lock beside it."""
    assert ledger_path(Path("/data"), worker) == Path("/data") / name
    assert lock_path(ledger_path(Path("/data"), worker)) == Path("/data") / f"{name}.lock"
