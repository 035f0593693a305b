"""CPU, memory and files of every process of the router, as the ``process_*`` metrics with a label ``process``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

SUPERVISOR: Final = "supervisor"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """One worker as its supervisor sees it. ``pid`` is None while it does not run; ``restarts`` counts the processes
    before this one.
    """

    index: int
    pid: int | None
    restarts: int


class ProcessFigures(Collector):
    """What the system says of the supervisor and of each worker that runs, named ``worker-0`` and so on."""

    def __init__(self, workers: Callable[[], Sequence[WorkerProcess]]) -> None:
        self._workers = workers

    def collect(self) -> Iterable[Metric]:
        """Families as of ``prometheus_client.ProcessCollector``."""
        families: dict[str, Metric] = {}
        for name, pid in self._processes():
            for found in _figures(pid):
                family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
                for sample in found.samples:
                    family.add_sample(sample.name, {"process": name}, sample.value)
        return families.values()

    def _processes(self) -> list[tuple[str, int | str]]:
        running = [(f"worker-{worker.index}", worker.pid) for worker in self._workers() if worker.pid is not None]
        return [(SUPERVISOR, "self"), *running]


def _figures(pid: int | str) -> Iterable[Metric]:
    return ProcessCollector(pid=lambda: pid, registry=None).collect()
