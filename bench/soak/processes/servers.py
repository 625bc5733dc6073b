"""The mongod and the Valkey of a long run, each on one port and in one directory all its lives."""

import asyncio
import os
import random
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from slotlock.devserver.binaries import ServerBinary, find_binary

# Below what the kernel gives to outgoing connections: one of those could take a dead server's port.
PORTS = (20_000, 32_000)
READY_TIMEOUT_S = 60.0


class SoakError(Exception):
    """The run cannot go on; the text says why."""


def free_port() -> int:
    """A port that nobody listens on and that no outgoing connection takes meanwhile."""
    while True:
        port = random.SystemRandom().randint(*PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


class SoakServer:
    """One server that may be killed, may hang, and comes back where it was."""

    def __init__(self, server_binary: ServerBinary, data_dir: Path) -> None:
        self.server_binary = server_binary
        self.port = free_port()
        self._binary_path = find_binary(server_binary, None)
        self._data_dir = data_dir
        self._data_dir.mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.server_binary.url_template.format(port=self.port)

    async def start(self) -> None:
        """Begin a life, and wait until it takes writes. Errors: SoakError."""
        self._process = process = self._launch()
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not await asyncio.to_thread(self.server_binary.is_ready, self.port, process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SoakError(
                    f"{self.server_binary.name} did not come back: see {self._data_dir / 'log'}"
                )
            await asyncio.sleep(0.05)

    def _launch(self) -> "subprocess.Popen[bytes]":
        command = [self._binary_path, self.server_binary.data_dir_option[0], str(self._data_dir)]
        command += ["--port", str(self.port), *self.server_binary.options]
        with (self._data_dir / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """SIGKILL: what it did not write it never will."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let it hang: its connections stay open and nothing comes back."""
        self._send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._send_signal(signal.SIGCONT)

    def _send_signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)
