"""Durations and sizes as text."""

import pytest

from router_ext.config.units import duration_s, size_bytes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("5m", 300.0),
        ("2h", 7200.0),
        ("250ms", 0.25),
        ("1h30m", 5400.0),
        ("1h2m3s4ms", 3723.004),
        ("1.5h", 5400.0),
        ("0s", 0.0),
    ],
)
def test_a_duration_adds_up_its_units(text: str, seconds: float) -> None:
    """h, m, s and ms, the largest first."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "s", "30 s", "-1s", "1m1h", "1s1s", "1d", "30S", "1e3s", "٣s", "30s\n"])
def test_other_text_is_no_duration(text: str) -> None:
    """No unit, wrong order, a sign, spaces and other digits are refused."""
    assert duration_s(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1b", 1),
        ("1k", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("32MB", 32_000_000),
        ("32MiB", 33_554_432),
        ("32 mib", 33_554_432),
        ("1G", 1_000_000_000),
        ("1GiB", 1_073_741_824),
        ("0.5KiB", 512),
    ],
)
def test_a_size_is_decimal_unless_the_unit_has_an_i(text: str, size: int) -> None:
    """kB counts by 1000 and KiB by 1024, in any case."""
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "32", "MiB", "1TB", "-1k", "0.5b", "1.0001k", "1  k", "1k "])
def test_other_text_is_no_size(text: str) -> None:
    """No unit, an unknown unit, a sign and parts of a byte are refused."""
    assert size_bytes(text) is None
