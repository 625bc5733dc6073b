"""Servers of a test's own, which it may stop, kill and start again."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slotlock.devserver.binaries import MONGOD, VALKEY, find_binary
from tests.support.apps.processes import free_port
from tests.support.polling import wait_until


class RestartableServer:
    """A mongod or a Valkey on one port and one directory, over all its lives."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.kind = kind
        self.port = free_port()
        self._directory = directory
        directory.mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens, and the database the tests use."""
        if self.kind == "valkey":
            return f"redis://127.0.0.1:{self.port}/0"
        return f"mongodb://127.0.0.1:{self.port}/own?replicaSet=rs0&directConnection=true"

    def start(self) -> None:
        """Start the server, and wait until it accepts writes."""
        self.launch()
        wait_until(self._is_writable, f"{self.kind} accepts writes")

    def launch(self) -> None:
        """Start the process, and do not wait. A mongod then belongs to no replica set yet."""
        if self.kind == "valkey":
            where = ["--port", str(self.port), "--dir", str(self._directory)]
            command = [find_binary(VALKEY, None), *where, "--bind", "127.0.0.1", "--save", ""]
        else:
            where = ["--port", str(self.port), "--dbpath", str(self._directory)]
            command = [find_binary(MONGOD, None), *where, "--replSet", "rs0", "--nounixsocket"]
            command += ["--bind_ip", "127.0.0.1", "--wiredTigerCacheSizeGB", "0.5"]
        log = (self._directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def _is_writable(self) -> bool:
        assert self._process is not None
        program = VALKEY if self.kind == "valkey" else MONGOD
        return program.is_ready(self.port, self._process.pid)

    def pause(self) -> None:
        """Let it hang: its connections stay open and nothing comes back."""
        self._send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End this life at once."""
        if self._process is not None:
            self._send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextmanager
def restartable_server(directory: Path, kind: str) -> Iterator[RestartableServer]:
    """A running server, gone at the end."""
    server = RestartableServer(directory, kind)
    server.start()
    try:
        yield server
    finally:
        server.kill()
