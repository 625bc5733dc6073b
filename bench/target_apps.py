"""Starting a target's processes as they run in production, and what they cost in CPU time."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class TargetAppError(Exception):
    """A target does not start; the text says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a target is started, and the path that answers 200 when it is ready."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    ready_path: str


@dataclass(frozen=True, slots=True)
class TargetApp:
    """A target that runs."""

    url: str
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> dict[int, float]:
        """CPU time of each of its processes so far, by pid; empty where there is no /proc."""
        spent = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name before the bracket may hold anything; proc(5) counts on after it.
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[2]) == self.process.pid:
                    spent[int(stat.parent.name)] = _seconds(fields[11], fields[12])
        return spent


def _seconds(user: str, system: str) -> float:
    return (int(user) + int(system)) / TICKS_PER_S


@contextmanager
def running(name: str, command: Command, logs: Path) -> Iterator[TargetApp]:
    """The target's processes in a group of their own, ended on leaving. Errors: AppError."""
    port = _free_port()
    own = {key: value for key, value in os.environ.items() if not key.startswith("SLOTLOCK_")}
    log_file = logs / f"{name}.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command.words,
            cwd=command.folder,
            env={**own, **command.environment, "PORT": str(port)},
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
        _terminate(process)


def _wait_until_ready(name: str, app: TargetApp, path: str, log_file: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _answers(app.url + path):
        if app.process.poll() is not None or time.monotonic() > deadline:
            said = log_file.read_text(errors="replace").strip().splitlines()[-5:]
            raise TargetAppError(f"{name} does not start: {' | '.join(said) or 'it said nothing'}")
        time.sleep(0.05)


def _answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False).status_code == 200
    return False


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):  # whichever of the group is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
