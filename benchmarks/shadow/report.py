"""The figures as a table."""

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.table import Row, lines

ROWS: Final = (
    Row("p99_ratio_hung_shadow", "p99 with hanging shadows against none, median of the rounds' ratios", 1.1),
    Row("p99_added_ms_hung_shadow", "the same as a difference, ms"),
    Row("p99_ratio_full_shadow", "p99 with 32 hanging shadows and all others dropped against none"),
    Row("p99_added_ms_full_shadow", "the same as a difference, ms"),
    Row("p99_ratio_healthy_shadow", "p99 with answered shadows against none"),
    Row("p99_added_ms_healthy_shadow", "the same as a difference, ms"),
    Row("p99_ms_inactive", "p99 without shadows, ms"),
    Row("answers_compared", "answers compared with those without a shadow, byte for byte"),
    Row("answers_different", "of these not equal", 0),
    Row("shadows_compared", "shadows compared, of those that are answered"),
    Row("shadows_not_compared", "drawn for them, but not compared"),
    Row("shadows_hanging", "shadows that hang at the end"),
    Row("shadows_hung_ended", "drawn where each has a place, but ended before"),
    Row("shadows_dropped", "shadows dropped, where 32 have a place"),
)


def table(figures: Mapping[str, Any]) -> list[str]:
    """See ``lines``."""
    return lines(ROWS, figures)
