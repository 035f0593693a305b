"""Files of recorded decisions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from google.protobuf.json_format import ParseDict, ParseError

from router_ext.v1 import decision_pb2 as pb

MAX_FILE_BYTES: Final = 1 << 30


class RecordError(ValueError):
    """A file that holds something else. The message names file and place, and quotes nothing."""


def read_decisions(path: Path) -> Iterator[pb.Decision]:
    """Every decision of the file, each once, in its order: of the lines of ``tail --json``, of lines that are decisions
    themselves, or of an answer of ``/api/decisions``. A last line that is cut off, as a ``tail`` that was killed
    leaves it, is no part of it. Raises OSError and RecordError.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise RecordError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    seen: set[tuple[str, int]] = set()
    for place, item in _items(path):
        decision = _decision(place, item)
        identity = decision.id, decision.attempt
        if not decision.id or identity not in seen:
            seen.add(identity)
            yield decision


def _items(path: Path) -> Iterator[tuple[str, object]]:
    """Objects with their places in the file."""
    content = path.read_bytes()
    try:
        whole = orjson.loads(content)
    except orjson.JSONDecodeError:
        yield from _lines(path, content)
        return
    decisions = whole.get("decisions") if isinstance(whole, dict) else None
    if isinstance(decisions, list):
        yield from ((f"{path}: decision {number}", item) for number, item in enumerate(decisions, 1))
    else:
        yield f"{path}:1", whole


def _lines(path: Path, content: bytes) -> Iterator[tuple[str, object]]:
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield f"{path}:{number}", orjson.loads(line)
            except orjson.JSONDecodeError:
                if 1 < number == len(lines):
                    return  # Without a line's end: whoever wrote it was stopped in the middle.
                raise RecordError(f"{path}:{number}: not JSON") from None


def _decision(place: str, item: object) -> pb.Decision:
    fields = item.get("decision", item) if isinstance(item, dict) else None
    # Of what a decision always has, to tell it from any other JSON.
    if not isinstance(fields, dict) or "time" not in fields or "request" not in fields:
        raise RecordError(f"{place}: no recorded decision")
    try:
        return ParseDict(fields, pb.Decision(), ignore_unknown_fields=True)
    except ParseError:
        raise RecordError(f"{place}: a field of the decision has another form") from None
