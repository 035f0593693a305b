"""Calls that router_ext makes itself, through Envoy's loopback egress listener: TLS and statistics have one home."""
