"""Runs wrk against a target and reads the counts of its script."""

import json
import os
import resource
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "load.lua"
CONNECTIONS = 64
SOCKET_TIMEOUT = "15s"
WORKLOADS = ("spread", "hot", "one", "list", "mixed")
READ_WORKLOADS = ("one", "list", "board")
HOT_SLOTS = 20


class LoadError(Exception):
    """wrk failed; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one run of wrk: `workload` to a `kind` of target, on a range of slots.

    `body` is a file with the body of every request, if they are all the same.
    """

    kind: str
    workload: str
    slots: int
    first_day: datetime
    tokens: Path
    first_slot: int = 0
    body: Path | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The counts of one run of wrk; `unexpected` is the last response of an unknown kind."""

    requests: int
    duration_us: int
    p50_us: int
    p99_us: int
    p999_us: int
    outcomes: dict[str, int]
    statuses: dict[str, int]
    socket_errors: dict[str, int]
    unexpected: str
    # The CPU time of wrk itself.
    client_cpu_s: float

    @property
    def rate(self) -> float:
        """Return the requests per second."""
        return self.requests / (self.duration_us / 1e6)


def drive(url: str, requests: Requests, seconds: int, connections: int = CONNECTIONS) -> Load:
    """Send requests to a target for this time and return the counts; raises LoadError."""
    cpu_before = _children_cpu_s()
    wrk = subprocess.run(
        [
            *("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", SOCKET_TIMEOUT),
            *("-s", str(SCRIPT), url),
        ],
        env={
            **os.environ,
            "KIND": requests.kind,
            "WORKLOAD": requests.workload,
            "FIRST_SLOT": str(requests.first_slot),
            "SLOTS": str(requests.slots),
            "FIRST_DAY": str(int(requests.first_day.timestamp())),
            "TOKENS": str(requests.tokens),
            "BODY": str(requests.body or ""),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    last_line = wrk.stdout.strip().rpartition("\n")[2]
    if wrk.returncode != 0 or not last_line.startswith("{"):
        raise LoadError(f"wrk fails: {(wrk.stderr or last_line).strip()}")
    counts: dict[str, Any] = json.loads(last_line)
    return Load(**counts, client_cpu_s=_children_cpu_s() - cpu_before)


def _children_cpu_s() -> float:
    """Return the CPU time of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
