"""Runs the processes of a target as in production, and reads their CPU time and memory."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.app_process import free_port, inherited_environment

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class TargetAppError(Exception):
    """A target does not start; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command that starts a target, and the path that returns 200 when it is ready."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    ready_path: str


@dataclass(frozen=True, slots=True)
class TargetApp:
    """A running target."""

    url: str
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> dict[int, float]:
        """Return the CPU time of each process so far, by pid; empty without /proc."""
        seconds = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = _stat_fields(stat)
                if int(fields[2]) == self.process.pid:
                    seconds[int(stat.parent.name)] = _seconds(fields)
        return seconds

    def memory_bytes(self) -> int:
        """Return the memory of all processes; 0 without /proc."""
        pages = 0
        for pid in self.cpu_seconds():
            with suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * PAGE_BYTES


def process_cpu_seconds(pid: int) -> float:
    """Return the CPU time of one process so far; 0 without /proc."""
    with suppress(OSError):
        return _seconds(_stat_fields(Path(f"/proc/{pid}/stat")))
    return 0.0


def _stat_fields(stat: Path) -> list[str]:
    # The program name ends at the last bracket and may contain any character: proc(5).
    return stat.read_text().rpartition(")")[2].split()


def _seconds(stat_fields: list[str]) -> float:
    user, system = stat_fields[11:13]
    return (int(user) + int(system)) / TICKS_PER_S


@contextmanager
def running(name: str, command: Command, log_dir: Path) -> Iterator[TargetApp]:
    """Run a target in a process group of its own; raises TargetAppError."""
    port = free_port()
    log_file = log_dir / f"{name}.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command.arguments,
            cwd=command.folder,
            env={**inherited_environment(), **command.environment, "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    app = TargetApp(f"http://127.0.0.1:{port}", process)
    try:
        _wait_until_ready(name, app, command.ready_path, log_file)
        yield app
    finally:
        stop(process)


def _wait_until_ready(name: str, app: TargetApp, path: str, log_file: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _responds(app.url + path):
        if app.process.poll() is not None or time.monotonic() > deadline:
            lines = log_file.read_text(errors="replace").strip().splitlines()[-5:]
            raise TargetAppError(f"{name} does not start: {' | '.join(lines) or 'empty log'}")
        time.sleep(0.05)


def _responds(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False).status_code == 200
    return False


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the leader of a process group, and kill what is left of the group."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):  # the group may have ended already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
