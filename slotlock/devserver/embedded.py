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

from slotlock.devserver.binaries import (
    MONGOD,
    VALKEY,
    ServerBinary,
    ServerStartError,
    find_binary,
    last_log_error,
)

if sys.platform != "win32":
    import fcntl

__all__ = ["EmbeddedServers", "ServerStartError", "embedded_servers"]

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
POLL_INTERVAL_S = 0.02
IS_LINUX = sys.platform == "linux"
MAX_LAUNCHES = 5
MAX_LOG_BYTES = 20 * 1024 * 1024
# Another process took the port first, or a former mongod is still on its way out of the directory.
TRANSIENT_ERRORS = (b"ddress already in use", b"DBPathInUse")


@dataclass(frozen=True, slots=True)
class EmbeddedServers:
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
) -> Iterator[EmbeddedServers]:
    """Run the servers whose URL is not given, and end them on leaving; raises `CannotStart`.

    Enter it from a thread that lives as long as the servers should (the main thread), before
    others start: Linux kills them when the *thread* that forked them ends, not only the process.
    """
    if mongo_url and redis_url:
        yield EmbeddedServers(mongo_url, redis_url)
        return
    home = data_dir.resolve()
    with ExitStack() as stack:
        stack.enter_context(_data_dir_lock(home))
        truth = mongo_url or ServerProcess(MONGOD, find_binary(MONGOD, mongod), home)
        hurry = redis_url or ServerProcess(VALKEY, find_binary(VALKEY, valkey), home)
        children = [server for server in (hurry, truth) if isinstance(server, ServerProcess)]
        stack.callback(_stop_all, children)
        for child in children:
            child.launch()
        for child in children:
            child.wait_until_ready()
        yield EmbeddedServers(
            mongo_url=truth.url if isinstance(truth, ServerProcess) else truth,
            redis_url=hurry.url if isinstance(hurry, ServerProcess) else hurry,
        )


@contextmanager
def _data_dir_lock(data_dir: Path) -> Iterator[None]:
    if sys.platform == "win32":
        raise ServerStartError(
            "embedded servers do not run on Windows: use compose.yaml, "
            "or set SLOTLOCK_MONGO_URL and SLOTLOCK_REDIS_URL"
        )
    with ExitStack() as stack:
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Not inheritable (PEP 446): a server that outlived us would keep the lock.
            lock = stack.enter_context((data_dir / "lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
        except BlockingIOError as refusal:
            holder = (data_dir / "lock").read_text().strip() or "unknown"
            raise ServerStartError(
                f"{data_dir} is in use by another instance (pid {holder}): "
                "stop it, or set SLOTLOCK_DATA_DIR to another directory"
            ) from refusal
        except OSError as problem:
            raise ServerStartError(
                f"cannot write to {data_dir} ({problem.strerror}): "
                "set SLOTLOCK_DATA_DIR to a directory of your own"
            ) from problem
        yield


@dataclass(slots=True)
class ServerProcess:
    """One server process with its directory, port, log and pid file."""

    server_binary: ServerBinary
    binary_path: str
    data_dir: Path
    port: int = 0
    log_offset: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.server_binary.url_template.format(port=self.port)

    @property
    def data_dir_arguments(self) -> tuple[str, str]:
        option, folder = self.server_binary.data_dir_option
        return option, str(self.data_dir / folder)

    def file_path(self, suffix: str) -> Path:
        return self.data_dir / f"{self.server_binary.name}.{suffix}"

    def launch(self) -> None:
        self.port = _free_port()
        try:
            Path(self.data_dir_arguments[1]).mkdir(mode=0o700, exist_ok=True)
            self._kill_leftover()
            with self.file_path("log").open("ab") as log:
                if log.tell() > MAX_LOG_BYTES:
                    log.truncate(0)
                self.log_offset = log.seek(0, os.SEEK_END)
                self.process = subprocess.Popen(  # noqa: S603 - `find` tried this binary
                    [
                        self.binary_path,
                        *self.data_dir_arguments,
                        "--port",
                        str(self.port),
                        *self.server_binary.options,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C reaches this process alone, which ends its children after its work.
                    start_new_session=True,
                    preexec_fn=_die_with_parent(),  # noqa: PLW1509
                )
            self.file_path("pid").write_text(f"{self.process.pid}\n")
        except OSError as problem:
            name = self.server_binary.name
            raise ServerStartError(f"{name} cannot run in {self.data_dir}: {problem}") from problem

    def wait_until_ready(self) -> None:
        """Launch again on another port while another process is in the way."""
        launches, deadline = 1, time.monotonic() + START_TIMEOUT_S
        name, log = self.server_binary.name, self.file_path("log")
        while self.process is None or not self._is_ready(self.process.pid):
            if self.process is None or self.process.poll() is not None:
                said = log.read_bytes()[self.log_offset :]
                if launches == MAX_LAUNCHES or not any(sign in said for sign in TRANSIENT_ERRORS):
                    raise ServerStartError(f"{name} died ({last_log_error(said)}): see {log}")
                launches += 1
                self.launch()
            if time.monotonic() > deadline:
                raise ServerStartError(
                    f"{name} was not ready in {START_TIMEOUT_S:.0f} s: see {log}"
                )
            time.sleep(POLL_INTERVAL_S)

    def _is_ready(self, pid: int) -> bool:
        # A client would wait before it looks again; the kernel tells at once.
        with socket.socket() as probe:
            listening = probe.connect_ex(("127.0.0.1", self.port)) == 0
        return listening and self.server_binary.is_ready(self.port, pid)

    def _kill_leftover(self) -> None:
        """End the server of a former run that was killed: it may outlive its owner's lock."""
        with suppress(OSError, ValueError):
            pid = int(self.file_path("pid").read_text())
            deadline = time.monotonic() + STOP_TIMEOUT_S
            ours = (
                f" {' '.join(self.data_dir_arguments)} "  # the pid may be another program's by now
            )
            while ours in f"{_command_line(pid)} " and time.monotonic() < deadline:
                os.kill(pid, signal.SIGKILL)
                time.sleep(POLL_INTERVAL_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> Callable[[], None] | None:
    if not IS_LINUX:
        return None
    # Loaded before the fork: between fork and exec nothing may import, lock or allocate much.
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong)
    owner = os.getpid()

    def set_death_signal() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != owner:  # it died before the call, which then promises nothing
            os._exit(1)

    return set_death_signal


def _command_line(pid: int) -> str:
    if IS_LINUX:  # a slim image has no ps
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
    listed = subprocess.run(  # noqa: S603
        ["ps", "-ww", "-p", str(pid), "-o", "command="],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout.strip()


def _stop_all(servers: list[ServerProcess]) -> None:
    processes = [child.process for child in servers if child.process is not None]
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:  # also when a second Ctrl-C cut the wait short
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    for child in servers:
        child.file_path("pid").unlink(missing_ok=True)
