"""Envoy's files on disk. A reader sees a whole old file or a whole new one."""

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from router_ext.config.sections import RouterConfig
from router_ext.envoygen.bootstrap import render_bootstrap
from router_ext.envoygen.clusters import render_clusters
from router_ext.envoygen.names import BOOTSTRAP_FILE, CLUSTERS_FILE


def write_envoy_files(config: RouterConfig, directory: Path) -> None:
    """Writes ``bootstrap.yaml`` and ``clusters.yaml`` to ``directory``, which is made (mode 0700) if it is missing.

    The bootstrap points at the cluster file in ``directory``, whatever ``server.envoy_dir`` says. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_clusters(config, directory)
    _replace_if_changed(directory / BOOTSTRAP_FILE, render_bootstrap(config, directory))


def write_clusters(config: RouterConfig, directory: Path) -> bool:
    """Writes ``clusters.yaml`` and says whether it changed; equal content is left alone, so Envoy does not reload.

    Raises OSError.
    """
    return _replace_if_changed(directory / CLUSTERS_FILE, render_clusters(config))


def _replace_if_changed(target: Path, content: dict[str, Any]) -> bool:
    text = yaml.safe_dump(content, sort_keys=False)
    if target.is_file() and target.read_text(encoding="utf-8") == text:
        return False
    _replace(target, text)
    return True


def _replace(target: Path, text: str) -> None:
    """Writes beside ``target`` and renames: a rename within one directory is atomic."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
