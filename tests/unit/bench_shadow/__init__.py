"""Pure parts of the benchmark of shadows."""
