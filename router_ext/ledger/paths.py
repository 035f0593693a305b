"""The names of the files."""

from pathlib import Path
from typing import Final

_NAME: Final = "ledger.sqlite"


def ledger_path(data_dir: Path, worker: int | None) -> Path:
    """The file of this process in ``server.data_dir``: ``ledger.w2.sqlite`` for worker 2 of several, ``ledger.sqlite``
    for one alone (None). A process that takes the place of another has the same.
    """
    path = data_dir / _NAME
    return path if worker is None else path.with_name(f"{path.stem}.w{worker}{path.suffix}")


def lock_path(path: Path) -> Path:
    """The file that whoever writes the ledger ``path`` has locked. It stays when nobody does."""
    return path.with_name(f"{path.name}.lock")
