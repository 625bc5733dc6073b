"""Servers of a single test, which it may pause, kill and start again."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from slotlock.devserver.binaries import MONGOD, VALKEY, find_binary
from tests.support.apps.processes import free_port
from tests.support.polling import wait_until


class RestartableServer:
    """A mongod or a Valkey that has the same port and directory after a restart."""

    def __init__(self, directory: Path, kind: str, options: Sequence[str] = ()) -> None:
        self.kind = kind
        self.port = free_port()
        self._directory = directory
        self._options = options
        directory.mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_paused = False

    @property
    def url(self) -> str:
        """The URL of the server and of the database that tests use."""
        if self.kind == "valkey":
            return f"redis://127.0.0.1:{self.port}/0"
        return f"mongodb://127.0.0.1:{self.port}/own?replicaSet=rs0&directConnection=true"

    def start(self) -> None:
        """Start the server and wait until it accepts writes."""
        self.launch()
        self.wait_until_writable()

    def launch(self) -> None:
        """Start the process without waiting. A new mongod does not belong to a replica set yet."""
        if self.kind == "valkey":
            where = ["--port", str(self.port), "--dir", str(self._directory)]
            command = [find_binary(VALKEY, None), *where, "--bind", "127.0.0.1", "--save", ""]
        else:
            where = ["--port", str(self.port), "--dbpath", str(self._directory)]
            command = [find_binary(MONGOD, None), *where, "--replSet", "rs0", "--nounixsocket"]
            command += ["--bind_ip", "127.0.0.1", "--wiredTigerCacheSizeGB", "0.5"]
        command += self._options
        log = (self._directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_until_writable(self) -> None:
        """Wait until the server accepts writes. A mongod joins its replica set."""
        wait_until(self._is_writable, f"{self.kind} accepts writes")

    def _is_writable(self) -> bool:
        assert self._process is not None
        program = VALKEY if self.kind == "valkey" else MONGOD
        return program.is_ready(self.port, self._process.pid)

    def pause(self) -> None:
        """Suspend the server: its connections stay open and it does not respond."""
        assert self._process is not None
        self._send_signal(signal.SIGSTOP)
        self._is_paused = True
        # Until it has stopped, it may still respond.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a suspended server continue."""
        self._is_paused = False
        self._send_signal(signal.SIGCONT)

    def restore(self) -> None:
        """Start or resume the server, if a test has left it killed or suspended."""
        if self._process is None:
            self.start()
        elif self._is_paused:
            self.resume()
            self.wait_until_writable()

    def kill(self) -> None:
        """Kill the server, if it runs."""
        if self._process is not None:
            self._send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
            self._is_paused = False

    def _send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextmanager
def restartable_server(
    directory: Path, kind: str, options: Sequence[str] = ()
) -> Iterator[RestartableServer]:
    """Run a server until the end of the block."""
    server = RestartableServer(directory, kind, options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
