"""Envoy's side of router_ext: external processing and access logs over gRPC."""
