"""What the quality gate costs, and what it keeps off other requests."""
