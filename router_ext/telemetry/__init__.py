"""Metrics and logs. Labels come from closed sets or the configuration only; logs hold no bodies and no credentials."""
