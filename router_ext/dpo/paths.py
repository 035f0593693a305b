"""The names of the files: that of each worker, and those of files that are full."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
_STAMPED: Final = re.compile(r"-([0-9]{8}T[0-9]{6}\.[0-9]{6}Z)")


def worker_path(path: Path, worker: int | None) -> Path:
    """The file of one of several workers: ``name.w2.jsonl`` for worker 2 of ``name.jsonl``; None: ``path`` itself."""
    return path if worker is None else path.with_name(f"{path.stem}.w{worker}{path.suffix}")


def rotated_path(path: Path, at_us: int) -> Path:
    """Where a full file goes: ``name-20260131T235959.123456Z.jsonl``. ``at_us`` is microseconds since the epoch; names
    sort by it.
    """
    stamp = (_EPOCH + timedelta(microseconds=at_us)).strftime(_STAMP)
    return path.with_name(f"{path.stem}-{stamp}{path.suffix}")


def rotated_at_us(path: Path, name: str) -> int | None:
    """The ``at_us`` of a file name; None when it is not one that ``path`` gives."""
    if not (name.startswith(path.stem) and name.endswith(path.suffix)):
        return None
    stamp = _STAMPED.fullmatch(name[len(path.stem) : len(name) - len(path.suffix)])
    try:
        at = datetime.strptime(stamp[1], _STAMP).replace(tzinfo=UTC) if stamp else None
    except ValueError:
        return None
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)
