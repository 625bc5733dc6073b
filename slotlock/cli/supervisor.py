"""The first process of `slotlock serve --workers`, which starts and replaces the server processes.

A process that starts is not sick, and a busy machine makes every process slow. Until a process
serves, only START_LIMIT_S ends it. Later its event loop has to beat within HEALTH_LIMIT_S. A thread
of the process answers with the number of beats, so that it is found when only the loop hangs.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing import context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import cast

from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS, Process

from slotlock.api.server.serve import uvicorn_config
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
# A forked process has the modules and the schema already. Elsewhere, libraries of the system may
# not survive a fork.
FORKS = sys.platform == "linux"
if sys.platform == "linux":
    PROCESS_TYPE: type[BaseProcess] = context.ForkProcess
else:
    PROCESS_TYPE = context.SpawnProcess
# Real-time signals have no names.
SIGNAL_NAMES = {each.value: each.name for each in signal.Signals}

log = logging.getLogger("slotlock")


def serve_from_processes(
    settings: Settings,
    listener: socket.socket,
    factory: Callable[[], ASGIApp],
    process_count: int,
) -> bool:
    """Serve an application from several processes that share the socket.

    Each process has what the factory returns. Returns whether the processes could start.
    """
    listener.set_inheritable(True)
    config = uvicorn_config(settings, factory, factory=True, workers=process_count)
    supervisor = Supervisor(config, [listener])
    supervisor.run()
    return not supervisor.has_failed


class BeatingServer(Server):
    """A server that counts the beats of its event loop, from its start to its very end."""

    beats = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and begin to beat."""
        await super().startup(sockets)
        if self.started:
            self._beat()

    def _beat(self) -> None:
        self.beats += 1
        asyncio.get_running_loop().call_later(BEAT_INTERVAL_S, self._beat)


class SupervisedProcess(Process):
    """A server process, and what the supervisor knows about it."""

    has_served = False
    # Since the start, or since the supervisor learned of the latest beat.
    silent_s = 0.0
    served_s = 0.0
    # Since the supervisor ended it; None before.
    ending_s: float | None = None
    # The process that ends when this one serves.
    replaced: "SupervisedProcess | None" = None
    _is_asked = False
    _beats = 0

    def __init__(
        self,
        config: Config,
        sockets: list[socket.socket],
        early_exits: int,
        dead_pid: int | None = None,
    ) -> None:
        super().__init__(config, sockets)
        # How many processes in a row ended in this place before STABLE_SERVICE_S.
        self.early_exits = early_exits
        # The process whose metrics this one continues.
        self._dead_pid = dead_pid
        self.process = PROCESS_TYPE(target=self.target, args=(sockets,))  # type: ignore[assignment]

    def start(self) -> None:
        """Start the process. It receives signals once it has no handlers of the supervisor."""
        if not FORKS:
            super().start()
            return
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal, inside the process."""
        if FORKS:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            if self._dead_pid is not None:
                adopt_metrics(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]), self._dead_pid)
        else:
            self.config.configure_logging()
        self._server = BeatingServer(self.config)
        super().target(sockets)

    def pong(self) -> None:
        """Wait for a question, and answer with the number of beats; a thread does that."""
        self.child_conn.recv()
        self.child_conn.send(cast("BeatingServer", self.server).beats)

    def end(self) -> None:
        """Let the process respond to its requests, and end."""
        if self.ending_s is None:
            self.ending_s = 0.0
            self.terminate()

    def check(self, passed_s: float) -> tuple[str, str] | None:
        """Return None while the process is well, else a reason of the metric, and it as a text.

        So much time has passed since the check before, or less.
        """
        if not self.process.is_alive():
            code = self.exitcode or 0
            if code < 0:
                return "killed", f"was killed by {SIGNAL_NAMES.get(-code, f'signal {-code}')}"
            return "exited", f"ended with exit code {code}"
        if self.ending_s is not None:
            self.ending_s += passed_s
            limit_s = (self.config.timeout_graceful_shutdown or 0) + END_RESERVE_S
            if self.ending_s >= limit_s:
                return "unresponsive", f"did not end within {limit_s:g} s, and was killed"
            return None
        self.silent_s = 0.0 if self._ping() else self.silent_s + passed_s
        if self.has_served:
            self.served_s += passed_s
            if self.silent_s >= HEALTH_LIMIT_S:
                return "unresponsive", f"did not respond for {HEALTH_LIMIT_S:g} s, and was killed"
        elif self.silent_s >= START_LIMIT_S:
            return "slow_start", f"did not serve within {START_LIMIT_S:g} s, and was killed"
        return None

    def _ping(self) -> bool:
        """Read the answers that have arrived, without waiting, and ask again.

        Return whether the event loop has beaten since the answer before.
        """
        beats = self._beats
        try:
            while self.parent_conn.poll():
                self._is_asked = False
                beats = self.parent_conn.recv()
            if not self._is_asked:
                self.parent_conn.send(b"ping")
                self._is_asked = True
        except (OSError, EOFError):  # the process has just ended, which the next check finds
            return False
        has_beaten, self._beats = beats > self._beats, beats
        if has_beaten and not self.has_served:
            self.has_served = True
            log.info("server process %s serves", self.pid)
        return has_beaten


class Supervisor(Multiprocess):
    """Starts the processes, and replaces those that end, hang or never serve."""

    processes: list[SupervisedProcess]  # type: ignore[assignment]
    # A process failed to start, each other one has ended before, and none ever served.
    has_failed = False
    _has_served = False

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        # When to start the next processes, and the early exits of each.
        self._pending_starts: list[tuple[float, int]] = []
        # The processes that a restart has not replaced yet.
        self._outdated: list[SupervisedProcess] = []
        # The processes that have ended, and whose metrics no other one continues yet.
        self._dead_pids: list[int] = []
        for reason in EXIT_REASONS:
            SERVER_PROCESS_EXITS.labels(reason)

    def init_processes(self) -> None:
        """Load the application, then start all processes."""
        if FORKS:
            self.config.load()
            gc.freeze()  # a collection in a process would copy the memory that it shares
        for _ in range(self.processes_num):
            self._start_process()

    def keep_subprocess_alive(self) -> None:
        """Check each process once, start those that are due, and go on with a restart."""
        if self._is_stopping:
            return  # Ctrl-C ends the processes, too
        self._check_all(CHECK_INTERVAL_S)
        while (
            self._pending_starts
            and self._pending_starts[0][0] <= monotonic()
            and not self.should_exit.is_set()
        ):
            self._start_process(self._pending_starts.pop(0)[1])
        if not self.should_exit.is_set():
            self._continue_restart()

    def terminate_all(self) -> None:
        """Stop all processes. The kernel accepts connections while any has the socket open."""
        for bound in self.sockets:
            bound.close()
        for process in self.processes:
            process.end()
            if process.replaced is not None:  # it does not serve yet
                process.kill()

    def join_all(self) -> None:
        """Wait until all processes have ended, and kill those that do not."""
        while self.processes:
            waits_since = monotonic()
            wait([each.process.sentinel for each in self.processes], CHECK_INTERVAL_S)
            self._check_all(min(monotonic() - waits_since, CHECK_INTERVAL_S))

    def restart_all(self) -> None:
        """Replace one process after the other on SIGHUP, each when its replacement serves."""
        self._outdated = list(self.processes)

    def handle_ttin(self) -> None:
        """Ignore SIGTTIN, by which uvicorn adds a process, and SIGTTOU: a setting says how many."""

    handle_ttou = handle_ttin

    @property
    def _is_stopping(self) -> bool:
        """Whether a signal has arrived that ends all processes, even if it is not handled yet."""
        return self.should_exit.is_set() or not STOP_SIGNALS.isdisjoint(self.signal_queue)

    def _check_all(self, passed_s: float) -> None:
        for process in list(self.processes):
            problem = process.check(passed_s)
            self._has_served = self._has_served or process.has_served
            if problem is not None:
                self._remove(process, *problem)

    def _continue_restart(self) -> None:
        """Take the next step of a restart: start a replacement, or end what it replaces.

        There is at most one process more than usual.
        """
        if any(each.ending_s is not None for each in self.processes):
            return
        for new in self.processes:
            if new.replaced is not None:
                if new.has_served:
                    new.replaced.end()
                    new.replaced = None
                return
        while self._outdated:
            old = self._outdated.pop(0)
            if old in self.processes:
                self._start_process().replaced = old
                return

    def _start_process(self, early_exits: int = 0) -> SupervisedProcess:
        dead_pid = self._dead_pids.pop() if self._dead_pids else None
        process = SupervisedProcess(self.config, self.sockets, early_exits, dead_pid)
        process.start()
        self.processes.append(process)
        return process

    def _remove(self, process: SupervisedProcess, reason: str, text: str) -> None:
        """Forget a process that has ended or has to, and see to it that others serve."""
        failed_to_start = process.exitcode == STARTUP_FAILURE
        process.kill()
        process.join()
        self.processes.remove(process)
        # The gauges of a killed process would count its subscriptions as open.
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]
        self._dead_pids.append(process.pid or 0)
        if process.ending_s is not None:
            if reason == "unresponsive":
                log.warning("server process %s %s", process.pid, text)
        elif process.replaced is not None:
            self._outdated = []
            problem = "server process %s %s; the restart ends, and older processes serve on"
            log.error(problem, process.pid, text)
        else:
            SERVER_PROCESS_EXITS.labels(reason).inc()
            self._replace(process, text, failed_to_start=failed_to_start)

    def _replace(self, ended: SupervisedProcess, text: str, *, failed_to_start: bool) -> None:
        """Start another process at once, or later if many end early."""
        for replacement in self.processes:
            if replacement.replaced is ended:
                replacement.replaced = None
                log.warning("server process %s %s; another has started", ended.pid, text)
                return
        is_first = not all(each.early_exits for each in self.processes)
        if failed_to_start and not self._has_served and not is_first:
            log.error(
                "server process %s failed to start, and no other one serves: slotlock stops",
                ended.pid,
            )
            self.has_failed = True
            self.should_exit.set()
            return
        pause_s, early_exits = 0.0, 0
        if ended.served_s < STABLE_SERVICE_S:
            early_exits = min(ended.early_exits + 1, MAX_DOUBLINGS)
            pause_s = FIRST_PAUSE_S * 2 ** (early_exits - 1)
        log.warning("server process %s %s; another starts in %g s", ended.pid, text, pause_s)
        self._pending_starts = sorted([*self._pending_starts, (monotonic() + pause_s, early_exits)])
