"""A supervisor of two processes that only sleep, whose waits are the steps of a test."""

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn

from slotlock.cli import supervisor

STEP_S = 0.5


class SupervisedSleeps:
    """Runs the supervisor; each step of a test yields the signal that ends a wait, or None."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        # "fork" or "pipe", if the system refuses it from now on.
        self.refused = ""
        self.now = 0.0
        self._writing = -1
        self._beating: dict[int, int] = {}
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(directory))
        monkeypatch.setattr("slotlock.cli.supervisor.monotonic", lambda: self.now)
        monkeypatch.setattr(os, "pipe", partial(self._call, "pipe", partial(self._pipe, os.pipe)))
        monkeypatch.setattr(os, "fork", partial(self._call, "fork", self._fork))
        monkeypatch.setattr("signal.sigtimedwait", self._wait)
        self._supervisor = supervisor.Supervisor(
            uvicorn.Config("", timeout_graceful_shutdown=1), socket.socket(), 2
        )

    @property
    def pids(self) -> list[int]:
        """The processes that run, in the order of their starts."""
        return [each.pid for each in self._supervisor._processes]

    @property
    def open_files(self) -> int:
        """How many files are open, besides those of the tests."""
        return len(os.listdir("/proc/self/fd")) - len(self._beating)

    def beat(self) -> None:
        """Let all processes serve."""
        for pid in self.pids:
            os.write(self._beating[pid], b".")

    def kill(self, pid: int) -> None:
        """Kill a process, as the system does without memory."""
        os.kill(pid, signal.SIGKILL)
        _wait_until_ended(pid)

    def run(self, steps: Iterator[int | None]) -> None:
        """Run the supervisor until the steps end, and stop it."""
        self._steps = steps
        try:
            assert self._supervisor.run()
        finally:
            for process in self._supervisor._processes:
                process.kill()
            for end in self._beating.values():
                os.close(end)

    def _wait(self, *_: object) -> SimpleNamespace | None:
        self.now += STEP_S
        for process in self._supervisor._processes:
            if process.ending_s is not None:
                _wait_until_ended(process.pid)
        number = next(self._steps, signal.SIGTERM)
        return None if number is None else SimpleNamespace(si_signo=number)

    def _call(self, name: str, function: Callable[[], object]) -> object:
        if self.refused == name:
            raise OSError(errno.EAGAIN, f"no {name} left")
        return function()

    def _pipe(self, of_system: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        reading, self._writing = of_system()
        return reading, self._writing

    def _fork(self) -> int:
        pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ)
        self._beating[pid] = os.dup(self._writing)
        return pid


def _wait_until_ended(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
