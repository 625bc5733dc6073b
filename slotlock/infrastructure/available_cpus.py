"""The CPUs that a process may use: by its affinity, and by the quota of its control group.

A container often has fewer than the machine, which `os.cpu_count` counts.
"""

import math
import os
import sys
from pathlib import Path

CONTROL_GROUPS, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available_cpus() -> int:
    """Return how many CPUs this process may use at once; a part of one counts as one."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    return math.ceil(min(len(os.sched_getaffinity(0)), cpu_quota(CONTROL_GROUPS, OWN_GROUP)))


def cpu_quota(control_groups: Path, own_group: Path) -> float:
    """Return how many CPUs the control group of this process may use: infinity without a limit.

    A group has at most what those above it have. Only version 2 of control groups counts. In a
    container, the group may have a path of the host, and lies at the root instead.
    """
    try:
        lines = own_group.read_text().splitlines()
    except OSError:
        return math.inf
    paths = [control_groups / line.removeprefix("0::/") for line in lines if line.startswith("0::")]
    folders = {folder for path in paths for folder in (path, *path.parents)}
    inside = [folder for folder in folders if folder.is_relative_to(control_groups)]
    return min((_quota(folder / "cpu.max") for folder in inside), default=math.inf)


def _quota(file: Path) -> float:
    """Return the quota of a `cpu.max`: `150000 100000` are 150 ms of each 100 ms, so 1.5 CPUs."""
    try:
        quota, period = file.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no limit
        return math.inf
