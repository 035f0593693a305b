"""Durations and sizes as people write them: ``1h30m``, ``250ms``, ``32MiB``."""

import re
from decimal import Decimal
from typing import Final

_AMOUNT: Final = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_DURATION: Final = re.compile(rf"(?:{_AMOUNT}h)?(?:{_AMOUNT}m)?(?:{_AMOUNT}s)?(?:{_AMOUNT}ms)?")
_DURATION_UNITS: Final = (Decimal(3600), Decimal(60), Decimal(1), Decimal("0.001"))

_SIZE: Final = re.compile(rf"{_AMOUNT} ?([a-z]+)", re.IGNORECASE)
_SIZE_UNITS: Final = {
    "b": 1,
    **dict.fromkeys(("k", "kb"), 10**3),
    **dict.fromkeys(("m", "mb"), 10**6),
    **dict.fromkeys(("g", "gb"), 10**9),
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


def duration_s(text: str) -> float | None:
    """Seconds of ``1h30m``, ``2h``, ``5m``, ``30s`` or ``250ms``: each unit at most once, the largest first.

    None when ``text`` is no such duration; a number without a unit is none.
    """
    found = _DURATION.fullmatch(text)
    if not text or not found:
        return None
    amounts = zip(found.groups(), _DURATION_UNITS, strict=True)
    return float(sum((Decimal(amount) * unit for amount, unit in amounts if amount), Decimal(0)))


def size_bytes(text: str) -> int | None:
    """Bytes of ``32MiB``, ``32MB`` or ``1k``, in any case: KiB, MiB and GiB count by 1024, k, M and G (with or without
    B) by 1000. None when ``text`` is no such size or not a whole number of bytes.
    """
    found = _SIZE.fullmatch(text)
    factor = _SIZE_UNITS.get(found.group(2).lower()) if found else None
    if found is None or factor is None:
        return None
    size = Decimal(found.group(1)) * factor
    return int(size) if size == int(size) else None
