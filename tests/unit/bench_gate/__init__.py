"""Pure parts of the benchmark of the quality gate."""
