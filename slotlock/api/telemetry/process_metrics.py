"""Build information, and the CPU time, memory and files of all server processes."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from slotlock import __version__

BUILD_INFO = Gauge(
    "slotlock_build_info",
    "The versions of slotlock and Python, as labels; the value is 1",
    ["version", "python"],
    multiprocess_mode="max",
)
BUILD_INFO.labels(__version__, platform.python_version()).set(1)
EXIT_REASONS = ("exited", "killed", "slow_start", "unresponsive")
SERVER_PROCESS_EXITS = Counter(
    "slotlock_server_process_exits_total",
    "Server processes of `serve --workers` that ended or were ended, and were replaced",
    ["reason"],
)


class ServerProcessCollector(Collector):
    """The `process_` metrics of prometheus_client for each server process, by `pid`.

    With several processes, prometheus_client leaves them out.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with one sample for each process."""
        families: dict[str, Metric] = {}
        for pid in _server_pids(self._directory):
            for metric in _process_metrics(pid):
                family = families.setdefault(
                    metric.name, Metric(metric.name, metric.documentation, metric.type)
                )
                for sample in metric.samples:
                    family.add_sample(sample.name, {"pid": str(pid)}, sample.value)
        return families.values()


def _process_metrics(pid: int) -> Iterable[Metric]:
    # A registry of its own: the collector registers itself.
    return ProcessCollector(pid=lambda: pid, registry=CollectorRegistry()).collect()


def _server_pids(directory: Path) -> list[int]:
    """Return the processes that write metrics and still run under this supervisor."""
    found = {int(file.stem.rpartition("_")[2]) for file in directory.glob("counter_*.db")}
    return sorted(pid for pid in found if _parent_of(pid) == os.getppid())


def _parent_of(pid: int) -> int | None:
    try:
        # After the name of the program, which may contain spaces: the state and the parent.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def adopt_metrics(directory: Path, dead_pid: int) -> None:
    """Continue the files of a process that has ended, in a process that has counted nothing yet.

    The sums need the counts of ended processes. Without this, there would be more files with each
    replaced process, which each request for the metrics reads.
    """
    for file in directory.glob(f"*_{dead_pid}.db"):
        kind = file.stem.rpartition("_")[0]
        file.rename(file.with_name(f"{kind}_{os.getpid()}.db"))
