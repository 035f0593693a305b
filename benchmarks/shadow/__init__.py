"""What shadow traffic costs the callers whose requests are copied."""
