"""Envoy's configuration, made from the router's: a bootstrap read once and a cluster file that may change later.

No rendered file holds a credential: keys travel in request headers that router_ext sets.
"""

from router_ext.envoygen.binary import EnvoyNotFoundError, find_envoy
from router_ext.envoygen.bootstrap import render_bootstrap
from router_ext.envoygen.clusters import render_clusters
from router_ext.envoygen.tls import CaBundleNotFoundError
from router_ext.envoygen.write import write_clusters, write_envoy_files

__all__ = [
    "CaBundleNotFoundError",
    "EnvoyNotFoundError",
    "find_envoy",
    "render_bootstrap",
    "render_clusters",
    "write_clusters",
    "write_envoy_files",
]
