"""A mongod or a Valkey of a campaign, on a fixed port and in a fixed directory."""

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from bench.app_process import free_port
from slotlock.devserver.binaries import ServerBinary, find_binary

READY_TIMEOUT_S = 60.0


class CampaignError(Exception):
    """The campaign cannot continue; the text is the reason."""


class KillableServer:
    """A server that faults kill, pause and start again on its port."""

    def __init__(self, server_binary: ServerBinary, data_dir: Path) -> None:
        self.server_binary = server_binary
        self.port = free_port()
        self._binary_path = find_binary(server_binary, None)
        self._data_dir = data_dir
        self._data_dir.mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return self.server_binary.url_template.format(port=self.port)

    @property
    def pid(self) -> int | None:
        """Return the id of the last process, or None before the first start."""
        return self._process.pid if self._process is not None else None

    @property
    def is_running(self) -> bool:
        """Return whether the last process has not ended."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start the server and wait until it accepts writes; raises CampaignError."""
        self._process = process = self._launch()
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not await asyncio.to_thread(self.server_binary.is_ready, self.port, process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                raise CampaignError(
                    f"{self.server_binary.name} does not start: see {self._data_dir / 'log'}"
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
        """Send SIGKILL, which loses all data that is not on disk, and wait."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Stop the process; its connections stay open without responses."""
        self._send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process."""
        self._send_signal(signal.SIGCONT)

    def _send_signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)
