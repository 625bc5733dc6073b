"""Running wrk against a target and reading what its script counted."""

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
    """wrk did not do its work; the text says why."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk saw."""

    requests: int
    duration_us: int
    p50_us: int
    p99_us: int
    outcomes: dict[str, int]
    statuses: dict[str, int]
    socket_errors: dict[str, int]
    odd: str  # the last answer that was none of the expected ones

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / (self.duration_us / 1e6)


def drive(url: str, kind: str, workload: str, slots: int, tokens: Path, seconds: int) -> Load:
    """Load a target for so long. Errors: LoadError."""
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
    last = wrk.stdout.strip().rpartition("\n")[2]
    if wrk.returncode != 0 or not last.startswith("{"):
        raise LoadError(f"wrk fails: {(wrk.stderr or last).strip()}")
    seen: dict[str, Any] = json.loads(last)
    return Load(**seen)
