"""Runs mongod and Valkey as child processes, so that one command starts everything."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from slotlock.devserver.binaries import (
    MONGOD,
    VALKEY,
    ServerBinary,
    ServerStartError,
    data_dir_in_use,
    find_binary,
    last_log_error,
)

if sys.platform != "win32":
    import fcntl

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
POLL_INTERVAL_S = 0.02
IS_LINUX = sys.platform == "linux"
MAX_LAUNCHES = 5
MAX_LOG_BYTES = 20 * 1024 * 1024
# Another process took the port first, or the previous mongod has not left the directory yet.
TRANSIENT_ERRORS = (b"ddress already in use", b"DBPathInUse")


@dataclass(frozen=True, slots=True)
class EmbeddedServers:
    """The addresses of MongoDB and Redis, and the processes of those that run embedded."""

    mongo_url: str
    redis_url: str
    processes: tuple["ServerProcess", ...] = field(default=(), repr=False, compare=False)


@contextmanager
def embedded_servers(
    data_dir: Path,
    *,
    mongo_url: str | None = None,
    redis_url: str | None = None,
    mongod: str | None = None,
    valkey: str | None = None,
) -> Iterator[EmbeddedServers]:
    """Run the servers whose URL is not given, and stop them on leaving.

    Enter it in the main thread, or in another thread that outlives the servers.
    Linux kills them when the *thread* that forked them ends, not only with the process.

    Raises:
        ServerStartError: A server cannot run here.
    """
    if mongo_url and redis_url:
        yield EmbeddedServers(mongo_url, redis_url)
        return
    home = data_dir.resolve()
    with ExitStack() as stack:
        stack.enter_context(_data_dir_lock(home))
        mongo = mongo_url or ServerProcess(MONGOD, find_binary(MONGOD, mongod), home)
        redis = redis_url or ServerProcess(VALKEY, find_binary(VALKEY, valkey), home)
        children = [server for server in (redis, mongo) if isinstance(server, ServerProcess)]
        stack.callback(_stop_all, children)
        for child in children:
            child.launch()
        for child in children:
            child.wait_until_ready()
        yield EmbeddedServers(
            mongo_url=mongo.url if isinstance(mongo, ServerProcess) else mongo,
            redis_url=redis.url if isinstance(redis, ServerProcess) else redis,
            processes=tuple(children),
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
            # Not inheritable (PEP 446): otherwise a server that outlives us would hold the lock.
            lock = stack.enter_context((data_dir / "lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
        except BlockingIOError as error:
            holder = (data_dir / "lock").read_text().strip() or "unknown"
            raise data_dir_in_use(data_dir, f"pid {holder}") from error
        except OSError as error:
            raise ServerStartError(
                f"cannot write to {data_dir} ({error.strerror}): "
                "set SLOTLOCK_DATA_DIR to a writable directory"
            ) from error
        yield


@dataclass(slots=True)
class ServerProcess:
    """One server process with its data directory, port, log and pid file."""

    server_binary: ServerBinary
    binary_path: str
    data_dir: Path
    port: int = 0
    log_offset: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return self.server_binary.url_template.format(port=self.port)

    @property
    def data_dir_arguments(self) -> tuple[str, str]:
        """Return the command line arguments that name the data directory."""
        option, folder = self.server_binary.data_dir_option
        return option, str(self.data_dir / folder)

    def file_path(self, suffix: str) -> Path:
        """Return the path of a file next to the data directory, such as the log."""
        return self.data_dir / f"{self.server_binary.name}.{suffix}"

    def launch(self) -> None:
        """Start the process on a free port; raises ServerStartError."""
        self.port = _free_port()
        self.start_process()

    def start_process(self) -> None:
        """Start the process on its port; raises ServerStartError."""
        try:
            Path(self.data_dir_arguments[1]).mkdir(mode=0o700, exist_ok=True)
            self._kill_leftover()
            with self.file_path("log").open("ab") as log:
                if log.tell() > MAX_LOG_BYTES:
                    log.truncate(0)
                self.log_offset = log.seek(0, os.SEEK_END)
                self.process = subprocess.Popen(  # noqa: S603 - `find_binary` validated it
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
                    # Ctrl-C must reach the parent only, which stops the servers after its own work.
                    start_new_session=True,
                    preexec_fn=_die_with_parent(),  # noqa: PLW1509
                )
            self.file_path("pid").write_text(f"{self.process.pid}\n")
        except OSError as error:
            name = self.server_binary.name
            raise ServerStartError(f"{name} cannot run in {self.data_dir}: {error}") from error

    def log_end(self, max_lines: int) -> list[str]:
        """Return the last lines that the current process wrote to its log."""
        output = self.file_path("log").read_bytes()[self.log_offset :]
        return output.decode(errors="replace").splitlines()[-max_lines:]

    def wait_until_ready(self) -> None:
        """Wait until the server is ready; after a transient error, launch it on another port.

        Raises:
            ServerStartError: The server died, or is not ready in time.
        """
        launches, deadline = 1, time.monotonic() + START_TIMEOUT_S
        name, log = self.server_binary.name, self.file_path("log")
        while self.process is None or not self._is_ready(self.process.pid):
            if self.process is None or self.process.poll() is not None:
                output = log.read_bytes()[self.log_offset :]
                if launches == MAX_LAUNCHES or not any(text in output for text in TRANSIENT_ERRORS):
                    raise ServerStartError(f"{name} died ({last_log_error(output)}): see {log}")
                launches += 1
                self.launch()
            if time.monotonic() > deadline:
                raise ServerStartError(
                    f"{name} was not ready in {START_TIMEOUT_S:.0f} s: see {log}"
                )
            time.sleep(POLL_INTERVAL_S)

    def _is_ready(self, pid: int) -> bool:
        # A database client would wait before its retry; a bare connection fails at once.
        with socket.socket() as probe:
            listening = probe.connect_ex(("127.0.0.1", self.port)) == 0
        return listening and self.server_binary.is_ready(self.port, pid)

    def _kill_leftover(self) -> None:
        """Kill the server of an earlier run whose parent was killed."""
        with suppress(OSError, ValueError):
            pid = int(self.file_path("pid").read_text())
            deadline = time.monotonic() + STOP_TIMEOUT_S
            # The pid may belong to another program now.
            own_arguments = f" {' '.join(self.data_dir_arguments)} "
            while own_arguments in f"{_command_line(pid)} " and time.monotonic() < deadline:
                os.kill(pid, signal.SIGKILL)
                time.sleep(POLL_INTERVAL_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> Callable[[], None] | None:
    if not IS_LINUX:
        return None
    # Loaded before the fork: nothing may import or lock between fork and exec.
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, ctypes.c_ulong)
    parent = os.getpid()

    def set_death_signal() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # the parent died before the call to prctl
            os._exit(1)

    return set_death_signal


def _command_line(pid: int) -> str:
    if IS_LINUX:  # a slim image lacks ps
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
    completed = subprocess.run(  # noqa: S603
        ["ps", "-ww", "-p", str(pid), "-o", "command="],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return completed.stdout.strip()


def _stop_all(servers: list[ServerProcess]) -> None:
    processes = [server.process for server in servers if server.process is not None]
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:  # a second Ctrl-C may interrupt the wait
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    for server in servers:
        server.file_path("pid").unlink(missing_ok=True)
