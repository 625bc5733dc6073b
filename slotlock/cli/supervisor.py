"""The first process of `slotlock serve --workers`, which forks and replaces the server processes.

Once a process serves, its event loop beats: it writes into a pipe twice a second. A process that
starts is not sick, and a busy machine makes every process slow. Until a process serves, only
START_LIMIT_S ends it. Later its event loop has to beat within HEALTH_LIMIT_S.

The first process waits for signals, which are blocked, and checks all processes after each one and
twice a second. Everything that it does is a step of these checks.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NoReturn

import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE

from slotlock.api.server.serve import serve, uvicorn_config
from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.process_metrics import (
    EXIT_REASONS,
    SERVER_PROCESS_EXITS,
    adopt_metrics,
)

START_LIMIT_S = 120.0
HEALTH_LIMIT_S = 60.0
# A process that stops ends so much later than its requests may last.
END_RESERVE_S = 30.0
# The limits count checks, not the clock: a pause of the whole machine ends no process.
CHECK_INTERVAL_S = 0.5
BEAT_INTERVAL_S = 0.5
# A process that ends after a shorter service is replaced later each time.
STABLE_SERVICE_S = 60.0
FIRST_PAUSE_S = 1.0
# The longest pause is 64 s.
MAX_DOUBLINGS = 7
STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
SIGNALS = STOP_SIGNALS | {signal.SIGHUP, signal.SIGCHLD}
# Real-time signals have no names.
SIGNAL_NAMES = {each.value: each.name for each in signal.Signals}

log = logging.getLogger("slotlock")


def serve_from_processes(
    settings: Settings, listener: socket.socket, app: ASGIApp, process_count: int
) -> bool:
    """Serve an application from several processes that share the socket, until a signal.

    Returns whether the processes could start.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it was ignored, no exit code would be left
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    config = uvicorn_config(settings, app)
    config.load()  # once for all processes
    gc.freeze()  # a collection in a process would copy the memory that it shares
    return Supervisor(config, listener, process_count).run()


def beat(pipe: int, supervisor_pid: int) -> None:
    """Beat from now on, in the event loop of a server process; stop when the supervisor is gone."""
    if os.getppid() != supervisor_pid:
        log.warning("the parent process has ended; this server process stops")
        signal.raise_signal(signal.SIGTERM)
        return
    with suppress(OSError):  # the pipe is full of beats, or nobody reads it any more
        os.write(pipe, b".")
    asyncio.get_running_loop().call_later(BEAT_INTERVAL_S, beat, pipe, supervisor_pid)


class SupervisedProcess:
    """A server process, and what the supervisor knows about it."""

    has_served = False
    # None while it runs; the negative number of the signal that killed it.
    exit_code: int | None = None
    # Since the start, or since the supervisor learned of the latest beat.
    silent_s = 0.0
    served_s = 0.0
    # Since the supervisor ended it; None before.
    ending_s: float | None = None
    # The process that ends when this one serves.
    replaced: "SupervisedProcess | None" = None

    def __init__(self, pid: int, pipe: int, end_limit_s: float, early_exits: int) -> None:
        self.pid = pid
        self._pipe = pipe
        self._end_limit_s = end_limit_s
        # How many processes in a row ended in this place before STABLE_SERVICE_S.
        self.early_exits = early_exits

    def end(self) -> None:
        """Let the process respond to its requests, and end."""
        if self.ending_s is None:
            self.ending_s = 0.0
            self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once, and wait until it has ended."""
        self._send(signal.SIGKILL)
        self._reap(0)

    def close(self) -> None:
        """Read no more beats."""
        os.close(self._pipe)

    def check(self, passed_s: float) -> tuple[str, str] | None:
        """Return None while the process is well, else a reason of the metric, and it as a text.

        So much time has passed since the check before, or less.
        """
        self._reap(os.WNOHANG)
        if self.exit_code is not None:
            number = -self.exit_code
            if number > 0:
                return "killed", f"was killed by {SIGNAL_NAMES.get(number, f'signal {number}')}"
            return "exited", f"ended with exit code {self.exit_code}"
        if self.ending_s is not None:
            self.ending_s += passed_s
            if self.ending_s < self._end_limit_s:
                return None
            return "unresponsive", f"did not end within {self._end_limit_s:g} s, and was killed"
        self.silent_s = 0.0 if self._has_beaten() else self.silent_s + passed_s
        if self.has_served:
            self.served_s += passed_s
            if self.silent_s >= HEALTH_LIMIT_S:
                return "unresponsive", f"did not respond for {HEALTH_LIMIT_S:g} s, and was killed"
        elif self.silent_s >= START_LIMIT_S:
            return "slow_start", f"did not serve within {START_LIMIT_S:g} s, and was killed"
        return None

    def _has_beaten(self) -> bool:
        """Return whether the event loop has beaten since the check before."""
        try:
            has_beaten = bool(os.read(self._pipe, 65_536))
        except BlockingIOError:
            return False
        if has_beaten and not self.has_served:
            self.has_served = True
            log.info("server process %s serves", self.pid)
        return has_beaten

    def _send(self, number: signal.Signals) -> None:
        if self.exit_code is None:  # until then, no other process has the pid
            os.kill(self.pid, number)

    def _reap(self, options: int) -> None:
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.exit_code = os.waitstatus_to_exitcode(status)


class Supervisor:
    """Starts the processes, and replaces those that end, hang or never serve."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, count: int) -> None:
        self._config = config
        self._listener = listener
        self._processes: list[SupervisedProcess] = []
        # When to start the next processes, and the early exits of each.
        self._pending_starts = [(0.0, 0)] * count
        # The processes that a restart has not replaced yet.
        self._outdated: list[SupervisedProcess] = []
        # The processes that have ended, and whose metrics no other one continues yet.
        self._dead_pids: list[int] = []
        # When processes may start, and how many starts the system refused in a row.
        self._starts_from, self._failed_starts = 0.0, 0
        self._has_served = self._is_stopping = False
        # A process failed to start, each other one has ended before, and none ever served.
        self._has_failed = False
        for reason in EXIT_REASONS:
            SERVER_PROCESS_EXITS.labels(reason)

    def run(self) -> bool:
        """Serve until a signal; return whether the processes could start."""
        while self._processes or self._pending_starts:
            if not self._is_stopping and self._starts_from <= monotonic():
                try:
                    self._start_pending()
                    self._continue_restart()
                except OSError as error:  # no memory, or no more processes or files
                    self._pause_starts(error)
            waits_since = monotonic()
            arrived = signal.sigtimedwait(SIGNALS, CHECK_INTERVAL_S)
            if arrived is not None and arrived.si_signo in STOP_SIGNALS:
                self._stop()
            elif arrived is not None and arrived.si_signo == signal.SIGHUP:
                self._outdated = list(self._processes)
            self._check_all(min(monotonic() - waits_since, CHECK_INTERVAL_S))
        return not self._has_failed

    def _stop(self) -> None:
        """Stop all processes. The kernel accepts connections while any has the socket open."""
        self._is_stopping = True
        self._pending_starts = []
        self._listener.close()
        for process in self._processes:
            process.end()
            if process.replaced is not None:  # it does not serve yet
                process.kill()

    def _check_all(self, passed_s: float) -> None:
        problems = [(each, each.check(passed_s)) for each in self._processes]
        self._has_served = self._has_served or any(each.has_served for each in self._processes)
        if not STOP_SIGNALS.isdisjoint(signal.sigpending()):
            return  # it may have reached the processes, too
        for process, problem in problems:
            if problem is not None:
                self._remove(process, *problem)

    def _continue_restart(self) -> None:
        """Take the next step of a restart: start a replacement, or end what it replaces.

        There is at most one process more than usual.
        """
        if any(each.ending_s is not None for each in self._processes):
            return
        for new in self._processes:
            if new.replaced is not None:
                if new.has_served:
                    new.replaced.end()
                    new.replaced = None
                return
        self._outdated = [each for each in self._outdated if each in self._processes]
        if self._outdated:
            self._start_process().replaced = self._outdated[0]
            del self._outdated[0]

    def _start_pending(self) -> None:
        while self._pending_starts and self._pending_starts[0][0] <= monotonic():
            self._start_process(self._pending_starts[0][1])
            del self._pending_starts[0]

    def _pause_starts(self, error: OSError) -> None:
        """Start no process for a while; the others serve on."""
        self._failed_starts = min(self._failed_starts + 1, MAX_DOUBLINGS)
        pause_s = FIRST_PAUSE_S * 2 ** (self._failed_starts - 1)
        log.error("no server process can start: %s; the next attempt is in %g s", error, pause_s)
        self._starts_from = monotonic() + pause_s

    def _start_process(self, early_exits: int = 0) -> SupervisedProcess:
        """Fork a process that serves. Raises: OSError, if the system refuses one."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        dead_pid = self._dead_pids[-1] if self._dead_pids else None
        supervisor_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if pid == 0:
            self._serve(partial(beat, writing, supervisor_pid), dead_pid)
        os.close(writing)
        if dead_pid is not None:
            self._dead_pids.pop()
        self._failed_starts = 0
        end_limit_s = (self._config.timeout_graceful_shutdown or 0) + END_RESERVE_S
        self._processes.append(SupervisedProcess(pid, reading, end_limit_s, early_exits))
        return self._processes[-1]

    def _serve(self, on_started: Callable[[], None], dead_pid: int | None) -> NoReturn:
        """Serve until a signal, inside a forked process, and end it."""
        code: object = 1
        try:
            # Ctrl-C is for the supervisor: a second signal would cut off what is in progress.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS - {signal.SIGINT})
            if dead_pid is not None:
                adopt_metrics(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), dead_pid)
            serve(self._config, self._listener, on_started)
            code = 0
        except SystemExit as failed:  # uvicorn says STARTUP_FAILURE
            code = failed.code
        except BaseException:
            log.exception("a server process failed")
        finally:
            os._exit(code if isinstance(code, int) else 1)

    def _remove(self, process: SupervisedProcess, reason: str, text: str) -> None:
        """Forget a process that has ended or has to, and see to it that others serve."""
        process.kill()
        process.close()
        self._processes.remove(process)
        # The gauges of a killed process would count its subscriptions as open.
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
        self._dead_pids.append(process.pid)
        if process.ending_s is not None:
            if reason == "unresponsive":
                log.warning("server process %s %s", process.pid, text)
        elif process.replaced is not None:
            self._outdated = []
            problem = "server process %s %s; the restart ends, and older processes serve on"
            log.error(problem, process.pid, text)
        else:
            SERVER_PROCESS_EXITS.labels(reason).inc()
            self._replace(process, text)

    def _replace(self, ended: SupervisedProcess, text: str) -> None:
        """Start another process at once, or later if many end early."""
        for replacement in self._processes:
            if replacement.replaced is ended:
                replacement.replaced = None
                log.warning("server process %s %s; another has started", ended.pid, text)
                return
        is_first = not all(each.early_exits for each in self._processes)
        failed_to_start = ended.exit_code == STARTUP_FAILURE
        if failed_to_start and not self._has_served and not is_first:
            log.error(
                "server process %s failed to start, and no other one serves: slotlock stops",
                ended.pid,
            )
            self._has_failed = True
            self._stop()
            return
        pause_s, early_exits = 0.0, 0
        if ended.served_s < STABLE_SERVICE_S:
            early_exits = min(ended.early_exits + 1, MAX_DOUBLINGS)
            pause_s = FIRST_PAUSE_S * 2 ** (early_exits - 1)
        log.warning("server process %s %s; another starts in %g s", ended.pid, text, pause_s)
        self._pending_starts = sorted([*self._pending_starts, (monotonic() + pause_s, early_exits)])
