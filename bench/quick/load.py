"""Runs wrk against a target and reads the counts of its script."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "load.lua"
CONNECTIONS = 64
SOCKET_TIMEOUT = "10s"
WORKLOADS = ("spread", "hot", "one")


class LoadError(Exception):
    """wrk failed; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Load:
    """The counts of one run of wrk; `unexpected` is the last response of an unknown kind."""

    requests: int
    duration_us: int
    p50_us: int
    p99_us: int
    outcomes: dict[str, int]
    statuses: dict[str, int]
    socket_errors: dict[str, int]
    unexpected: str

    @property
    def rate(self) -> float:
        """Return the requests per second."""
        return self.requests / (self.duration_us / 1e6)


def drive(url: str, kind: str, workload: str, slots: int, tokens: Path, seconds: int) -> Load:
    """Send requests to a target for this time and return the counts; raises LoadError."""
    wrk = subprocess.run(
        [
            *("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", SOCKET_TIMEOUT),
            *("-s", str(SCRIPT), url),
        ],
        env={
            **os.environ,
            "KIND": kind,
            "WORKLOAD": workload,
            "SLOTS": str(slots),
            "TOKENS": str(tokens),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    last_line = wrk.stdout.strip().rpartition("\n")[2]
    if wrk.returncode != 0 or not last_line.startswith("{"):
        raise LoadError(f"wrk fails: {(wrk.stderr or last_line).strip()}")
    counts: dict[str, Any] = json.loads(last_line)
    return Load(**counts)
