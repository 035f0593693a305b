"""Periodic looks at backends and at Envoy."""
