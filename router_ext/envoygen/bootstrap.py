"""The bootstrap: what Envoy reads once. Everything that may change while it runs is in the cluster file."""

from pathlib import Path
from typing import Any

from envoy_data_plane.envoy.config.bootstrap.v3 import (
    Admin,
    Bootstrap,
    BootstrapDynamicResources,
    BootstrapStaticResources,
)
from envoy_data_plane.envoy.config.core.v3 import ApiVersion, ConfigSource, Node, PathConfigSource, WatchedDirectory
from envoy_data_plane.envoy.config.overload.v3 import OverloadManager, ResourceMonitor
from envoy_data_plane.envoy.extensions.resource_monitors.downstream_connections.v3 import DownstreamConnectionsConfig
from envoy_data_plane.google.protobuf import Any as PackedMessage

from router_ext.config.sections import RouterConfig, Server
from router_ext.envoygen.listeners import egress_listener, ingress_listener
from router_ext.envoygen.messages import plain, tcp
from router_ext.envoygen.names import CLUSTERS_FILE
from router_ext.envoygen.processor import processor_clusters

NODE = "router-ext"


def render_bootstrap(config: RouterConfig, directory: Path | None = None) -> dict[str, Any]:
    """The bootstrap that expects the cluster file in ``directory`` (default: ``server.envoy_dir``).

    It depends on ``server`` alone, so a change of backends never needs a restart.
    """
    server = config.server
    clusters = _cluster_file((directory or server.envoy_dir).absolute())
    return plain(
        Bootstrap(
            node=Node(id=NODE, cluster=NODE),
            admin=Admin(address=tcp("127.0.0.1", server.envoy_admin_port), ignore_global_conn_limit=True),
            static_resources=BootstrapStaticResources(
                listeners=[ingress_listener(server), egress_listener(server)], clusters=processor_clusters(server)
            ),
            dynamic_resources=BootstrapDynamicResources(cds_config=clusters),
            overload_manager=_connection_limit(server),
        )
    )


def _cluster_file(directory: Path) -> ConfigSource:
    """Envoy acts on a rename into the watched directory, so it never reads half a file."""
    return ConfigSource(
        resource_api_version=ApiVersion.V3,
        path_config_source=PathConfigSource(
            path=str(directory / CLUSTERS_FILE), watched_directory=WatchedDirectory(path=str(directory))
        ),
    )


def _connection_limit(server: Server) -> OverloadManager:
    limit = DownstreamConnectionsConfig(max_active_downstream_connections=server.max_connections)
    monitor = ResourceMonitor(
        name="envoy.resource_monitors.global_downstream_max_connections", typed_config=PackedMessage.pack(limit)
    )
    return OverloadManager(resource_monitors=[monitor])
