"""Runs mongod and Valkey as children of this process, so that one command starts everything."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from slotlock.api.binaries import MONGOD, VALKEY, CannotStart, Program, find, last_error

if sys.platform != "win32":
    import fcntl

__all__ = ["CannotStart", "Servers", "embedded_servers"]

START_SECONDS = 60.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.02
LINUX = sys.platform == "linux"
LAUNCHES = 5
LOG_BYTES = 20 * 1024 * 1024
# Another process took the port first, or a former mongod is still on its way out of the directory.
PASSING = (b"ddress already in use", b"DBPathInUse")


@dataclass(frozen=True, slots=True)
class Servers:
    mongo_url: str
    redis_url: str


@contextmanager
def embedded_servers(
    data_dir: Path,
    *,
    mongo_url: str | None = None,
    redis_url: str | None = None,
    mongod: str | None = None,
    valkey: str | None = None,
) -> Iterator[Servers]:
    """Run the servers whose URL is not given, and end them on leaving; raises `CannotStart`.

    Enter it from a thread that lives as long as the servers should (the main thread), before
    others start: Linux kills them when the *thread* that forked them ends, not only the process.
    """
    if mongo_url and redis_url:
        yield Servers(mongo_url, redis_url)
        return
    home = data_dir.resolve()
    with ExitStack() as stack:
        stack.enter_context(_locked(home))
        truth = mongo_url or Child(MONGOD, find(MONGOD, mongod), home)
        hurry = redis_url or Child(VALKEY, find(VALKEY, valkey), home)
        children = [server for server in (hurry, truth) if isinstance(server, Child)]
        stack.callback(_end, children)
        for child in children:
            child.launch()
        for child in children:
            child.wait_until_ready()
        yield Servers(
            mongo_url=truth.url if isinstance(truth, Child) else truth,
            redis_url=hurry.url if isinstance(hurry, Child) else hurry,
        )


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    if sys.platform == "win32":
        raise CannotStart(
            "embedded servers do not run on Windows: use compose.yaml, "
            "or set SLOTLOCK_MONGO_URL and SLOTLOCK_REDIS_URL"
        )
    with ExitStack() as stack:
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Not inheritable (PEP 446): a server that outlived us would keep the lock.
            lock = stack.enter_context((home / "lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
        except BlockingIOError as refusal:
            holder = (home / "lock").read_text().strip() or "unknown"
            raise CannotStart(
                f"{home} is in use by another instance (pid {holder}): "
                "stop it, or set SLOTLOCK_DATA_DIR to another directory"
            ) from refusal
        except OSError as problem:
            raise CannotStart(
                f"cannot write to {home} ({problem.strerror}): "
                "set SLOTLOCK_DATA_DIR to a directory of your own"
            ) from problem
        yield


@dataclass(slots=True)
class Child:
    """One server process with its directory, port, log and pid file."""

    program: Program
    binary: str
    home: Path
    port: int = 0
    log_start: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.program.url.format(port=self.port)

    @property
    def place(self) -> tuple[str, str]:
        option, folder = self.program.place
        return option, str(self.home / folder)

    def file(self, suffix: str) -> Path:
        return self.home / f"{self.program.name}.{suffix}"

    def launch(self) -> None:
        self.port = _free_port()
        try:
            Path(self.place[1]).mkdir(mode=0o700, exist_ok=True)
            self._end_leftover()
            with self.file("log").open("ab") as log:
                if log.tell() > LOG_BYTES:
                    log.truncate(0)
                self.log_start = log.seek(0, os.SEEK_END)
                self.process = subprocess.Popen(  # noqa: S603 - `find` tried this binary
                    [self.binary, *self.place, "--port", str(self.port), *self.program.options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C reaches this process alone, which ends its children after its work.
                    start_new_session=True,
                    preexec_fn=_bound_to_this_process(),  # noqa: PLW1509
                )
            self.file("pid").write_text(f"{self.process.pid}\n")
        except OSError as problem:
            name = self.program.name
            raise CannotStart(f"{name} cannot run in {self.home}: {problem}") from problem

    def wait_until_ready(self) -> None:
        """Launch again on another port while another process is in the way."""
        launches, deadline = 1, time.monotonic() + START_SECONDS
        name, log = self.program.name, self.file("log")
        while self.process is None or not self._is_ready(self.process.pid):
            if self.process is None or self.process.poll() is not None:
                said = log.read_bytes()[self.log_start :]
                if launches == LAUNCHES or not any(sign in said for sign in PASSING):
                    raise CannotStart(f"{name} died ({last_error(said)}): see {log}")
                launches += 1
                self.launch()
            if time.monotonic() > deadline:
                raise CannotStart(f"{name} was not ready in {START_SECONDS:.0f} s: see {log}")
            time.sleep(POLL_SECONDS)

    def _is_ready(self, pid: int) -> bool:
        # A client would wait before it looks again; the kernel tells at once.
        with socket.socket() as probe:
            listening = probe.connect_ex(("127.0.0.1", self.port)) == 0
        return listening and self.program.is_ready(self.port, pid)

    def _end_leftover(self) -> None:
        """End the server of a former run that was killed: it may outlive its owner's lock."""
        with suppress(OSError, ValueError):
            pid = int(self.file("pid").read_text())
            deadline = time.monotonic() + STOP_SECONDS
            ours = f" {' '.join(self.place)} "  # the pid may be another program's by now
            while ours in f"{_command_line(pid)} " and time.monotonic() < deadline:
                os.kill(pid, signal.SIGKILL)
                time.sleep(POLL_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _bound_to_this_process() -> Callable[[], None] | None:
    if not LINUX:
        return None
    # Loaded before the fork: between fork and exec nothing may import, lock or allocate much.
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong)
    owner = os.getpid()

    def bind() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != owner:  # it died before the call, which then promises nothing
            os._exit(1)

    return bind


def _command_line(pid: int) -> str:
    if LINUX:  # a slim image has no ps
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
    listed = subprocess.run(  # noqa: S603
        ["ps", "-ww", "-p", str(pid), "-o", "command="],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout.strip()


def _end(children: list[Child]) -> None:
    processes = [child.process for child in children if child.process is not None]
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:  # also when a second Ctrl-C cut the wait short
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    for child in children:
        child.file("pid").unlink(missing_ok=True)
