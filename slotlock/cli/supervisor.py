"""The first process of `slotlock serve --workers`, which starts and replaces the server processes.

A process that starts is not sick, and a busy machine makes every process slow. Until a process
serves, only START_LIMIT_S ends it. Later it has to answer within HEALTH_LIMIT_S; a thread of the
process answers, so a busy event loop does not count.
"""

import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing import context
from multiprocessing.process import BaseProcess
from time import monotonic, sleep

from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS, Process

from slotlock.api.server.serve import uvicorn_config
from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.process_metrics import EXIT_REASONS, SERVER_PROCESS_EXITS

START_LIMIT_S = 120.0
HEALTH_LIMIT_S = 60.0
# The limits count checks, not the clock: a pause of the whole machine ends no process.
CHECK_INTERVAL_S = 0.5
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


class SupervisedProcess(Process):
    """A server process, and what the supervisor knows about it."""

    has_served = False
    # Since the start, or since the latest answer that the process serves.
    silent_s = 0.0
    served_s = 0.0
    _is_asked = False

    def __init__(self, config: Config, sockets: list[socket.socket], early_exits: int) -> None:
        super().__init__(config, sockets)
        # How many processes in a row ended in this place before STABLE_SERVICE_S.
        self.early_exits = early_exits
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
        else:
            self.config.configure_logging()
        super().target(sockets)

    def check(self) -> tuple[str, str] | None:
        """Return None while the process is well, else a reason of the metric, and it as a text."""
        if not self.process.is_alive():
            code = self.exitcode or 0
            if code < 0:
                return "killed", f"was killed by {SIGNAL_NAMES.get(-code, f'signal {-code}')}"
            return "exited", f"ended with exit code {code}"
        self.silent_s = 0.0 if self._ping() else self.silent_s + CHECK_INTERVAL_S
        if self.has_served:
            self.served_s += CHECK_INTERVAL_S
            if self.silent_s >= HEALTH_LIMIT_S:
                return "unresponsive", f"did not respond for {HEALTH_LIMIT_S:g} s, and was killed"
        elif self.silent_s >= START_LIMIT_S:
            return "slow_start", f"did not serve within {START_LIMIT_S:g} s, and was killed"
        return None

    def _ping(self) -> bool:
        """Read the answers that have arrived, without waiting, and ask again.

        Return whether an answer says that the process serves.
        """
        serves = False
        try:
            while self.parent_conn.poll():
                self._is_asked = False
                serves = self.parent_conn.recv()
            if not self._is_asked:
                self.parent_conn.send(b"ping")
                self._is_asked = True
        except (OSError, EOFError):  # the process has just ended, which the next check finds
            return False
        if serves and not self.has_served:
            self.has_served = True
            log.info("server process %s serves", self.pid)
        return serves


class Supervisor(Multiprocess):
    """Starts the processes, and replaces those that end, do not respond or never serve."""

    processes: list[SupervisedProcess]  # type: ignore[assignment]
    # A process failed to start, each other one has ended before, and none ever served.
    has_failed = False
    _has_served = False

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        # When to start the next processes, and the early exits of each.
        self._pending_starts: list[tuple[float, int]] = []
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
        """Check each process once, and start those that are due."""
        if self._is_stopping:
            return  # Ctrl-C ends the processes, too
        for process in list(self.processes):
            problem = process.check()
            self._has_served = self._has_served or process.has_served
            if problem is not None:
                self._remove(process, *problem)
        while (
            self._pending_starts
            and self._pending_starts[0][0] <= monotonic()
            and not self.should_exit.is_set()
        ):
            self._start_process(self._pending_starts.pop(0)[1])

    def terminate_all(self) -> None:
        """Stop all processes. The kernel accepts connections while any has the socket open."""
        for bound in self.sockets:
            bound.close()
        super().terminate_all()

    def restart_all(self) -> None:
        """Replace one process after the other on SIGHUP, each when its replacement serves."""
        for old in list(self.processes):
            if self._is_stopping:
                return
            new = self._start_process()
            problem = new.check()
            while not (new.has_served or problem or self._is_stopping):
                sleep(CHECK_INTERVAL_S)
                problem = new.check()
            if not new.has_served:
                self._kill(new)
                if problem is not None:
                    text = "server process %s %s; the restart ends, and older processes serve on"
                    log.error(text, new.pid, problem[1])
                return
            self._end(old)

    def handle_ttin(self) -> None:
        """Add a process on SIGTTIN."""
        self.processes_num += 1
        self._start_process()

    def handle_ttou(self) -> None:
        """End a process on SIGTTOU, or do not start one that is due; the last one remains."""
        if self.processes_num > 1:
            self.processes_num -= 1
            if self._pending_starts:
                self._pending_starts.pop()
            else:
                self._end(self.processes[-1])

    @property
    def _is_stopping(self) -> bool:
        """Whether a signal has arrived that ends all processes, even if it is not handled yet."""
        return self.should_exit.is_set() or not STOP_SIGNALS.isdisjoint(self.signal_queue)

    def _start_process(self, early_exits: int = 0) -> SupervisedProcess:
        process = SupervisedProcess(self.config, self.sockets, early_exits)
        process.start()
        self.processes.append(process)
        return process

    def _end(self, process: SupervisedProcess) -> None:
        """End a process that serves, when it has responded to its requests."""
        process.terminate()
        while process.process.is_alive():
            if self._is_stopping:
                return  # `join_all` waits for it
            process.process.join(CHECK_INTERVAL_S)
        self._kill(process)

    def _kill(self, process: SupervisedProcess) -> None:
        process.kill()
        process.join()
        self.processes.remove(process)
        # The gauges of a killed process would count its subscriptions as open.
        mark_process_dead(process.pid)  # type: ignore[no-untyped-call]

    def _remove(self, process: SupervisedProcess, reason: str, text: str) -> None:
        """Forget a process, and start another one at once, or later if many end early."""
        failed_to_start = process.exitcode == STARTUP_FAILURE
        self._kill(process)
        SERVER_PROCESS_EXITS.labels(reason).inc()
        is_first = not all(each.early_exits for each in self.processes)
        if failed_to_start and not self._has_served and not is_first:
            log.error(
                "server process %s failed to start, and no other one serves: slotlock stops",
                process.pid,
            )
            self.has_failed = True
            self.should_exit.set()
            return
        pause_s, early_exits = 0.0, 0
        if process.served_s < STABLE_SERVICE_S:
            early_exits = min(process.early_exits + 1, MAX_DOUBLINGS)
            pause_s = FIRST_PAUSE_S * 2 ** (early_exits - 1)
        log.warning("server process %s %s; another starts in %g s", process.pid, text, pause_s)
        self._pending_starts = sorted([*self._pending_starts, (monotonic() + pause_s, early_exits)])
