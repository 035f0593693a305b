"""Where a worker and its supervisor meet: one folder with a socket a worker, the shared counts and the metrics."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from router_ext.config.sections import Server, UnixAddress


@dataclass(frozen=True, slots=True)
class WorkerFolder:
    """The folder of one supervisor; nobody else may enter it."""

    path: Path

    def admin_socket(self, worker: int) -> Path:
        """Where a worker answers its supervisor."""
        return self.path / f"worker-{worker}.sock"

    @property
    def tally(self) -> Path:
        """The workers' counts of open requests."""
        return self.path / "in-flight"

    @property
    def metrics(self) -> Path:
        """The workers' counters and histograms, in prometheus-client's multiprocess files."""
        return self.path / "metrics"


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """One worker of ``count``. A process that takes the place of one that died has the same ``index``, from 0."""

    index: int
    count: int
    folder: WorkerFolder

    @property
    def admin_socket(self) -> Path:
        """Where this worker answers its supervisor."""
        return self.folder.admin_socket(self.index)


def make_folder(server: Server) -> WorkerFolder:
    """An empty folder (mode 0700) in place of the one of an earlier run: beside the processor's sockets, else in the
    directory for temporary files. Raises OSError.
    """
    address = server.processor_address
    if isinstance(address, UnixAddress):
        path = address.path.with_suffix(".workers")
    else:
        path = Path(tempfile.gettempdir()) / f"router_ext-{address.port}.workers"
    if path.is_dir():
        shutil.rmtree(path)
    path.mkdir(parents=True, mode=0o700)
    folder = WorkerFolder(path)
    folder.metrics.mkdir(mode=0o700)
    return folder
