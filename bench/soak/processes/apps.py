"""The app's processes, which are killed and started again, and their memory."""

import asyncio
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import httpx

from bench.app_process import graphql_url, launch
from bench.soak.processes.servers import SoakError, free_port

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 45.0
# Loading certificates, as httpx does by default, would hold the event loop for 100 ms.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(slots=True)
class ProcessRun:
    """One process from its start to its end, with its first and last memory in MiB."""

    app_index: int
    started_at: float
    first_mib: float
    last_mib: float
    ended_at: float | None = None


@dataclass(slots=True)
class SoakApp:
    """One app on a fixed port, over all its processes; `is_busy` marks one that chaos handles."""

    index: int
    environment: Mapping[str, str]
    log_file: Path
    port: int = field(default_factory=free_port)
    process_runs: list[ProcessRun] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    is_up: bool = False
    is_busy: bool = False
    process: subprocess.Popen[bytes] | None = None
    command: ClassVar[str] = "serve"
    _log_offset: int = 0

    @property
    def name(self) -> str:
        """Return the name for the output."""
        return f"app {self.index}"

    @property
    def url(self) -> str:
        """Return the address of GraphQL over HTTP."""
        return graphql_url(self.port)

    @property
    def socket_url(self) -> str:
        """Return the address of GraphQL over WebSocket."""
        return graphql_url(self.port, "ws")

    async def start(self) -> None:
        """Start a process, again while MongoDB or Valkey are unavailable; raises SoakError."""
        deadline = time.monotonic() + START_TIMEOUT_S
        self._launch()
        while not await self._is_ready():
            if time.monotonic() > deadline:
                raise SoakError(f"{self.name} does not start: see {self.log_file}")
            if self.process is None or self.process.poll() is not None:
                self._launch()
            await asyncio.sleep(0.1)
        memory_mib = self.memory_mib()
        self.process_runs.append(ProcessRun(self.index, time.time(), memory_mib, memory_mib))
        self.is_up = True

    def _launch(self) -> None:
        self._log_offset = self.log_file.stat().st_size if self.log_file.exists() else 0
        self.process = launch(self.command, self.environment, self.port, self.log_file)

    async def _is_ready(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/readyz"
        async with httpx.AsyncClient(trust_env=False, timeout=2, verify=NO_TLS) as client:
            with suppress(httpx.TransportError):
                return (await client.get(url)).status_code == 200
        return False

    def pause(self) -> None:
        """Let it hang, with all that it has begun."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on, as if no time had passed."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._end_process_run()
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def stop(self) -> int:
        """Send SIGTERM and return the exit code, or -9 after a SIGKILL."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        self._end_process_run()
        with suppress(subprocess.TimeoutExpired):
            code = await asyncio.to_thread(self.process.wait, STOP_TIMEOUT_S)
            self.exit_codes.append(code)
            return code
        self.kill()
        self.exit_codes.append(-9)
        return -9

    def _end_process_run(self) -> None:
        if self.is_up:
            self.sample_memory()
            self.process_runs[-1].ended_at = time.time()
        self.is_up = False

    def memory_mib(self) -> float:
        """Return the resident memory in MiB, or 0 without /proc."""
        with suppress(OSError):
            pid = self.process.pid if self.process else 0
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB
        return 0.0

    def sample_memory(self) -> None:
        """Record the present memory."""
        if self.is_up and (memory_mib := self.memory_mib()):
            self.process_runs[-1].last_mib = memory_mib


class SoakWorker(SoakApp):
    """A process that only serves the admission queue."""

    command: ClassVar[str] = "worker"

    @property
    def name(self) -> str:
        """Return the name for the output."""
        return "worker"

    async def _is_ready(self) -> bool:
        return b"serving the admission queue" in self.log_file.read_bytes()[self._log_offset :]
