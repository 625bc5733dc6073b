"""The apps and workers of a campaign, each behind the links and with a clock of its own."""

import asyncio
import os
import signal
import ssl
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.app_process import PROJECT, free_port, launch
from bench.faults.topology.links import Links
from bench.faults.topology.servers import CampaignError

START_TIMEOUT_S, STOP_TIMEOUT_S = 90.0, 45.0
CLOCK_FOLDER = Path(__file__).parent / "skewed_clock"
OFFSET = struct.Struct("d")
# Loading certificates, as httpx does by default, would hold the event loop for 100 ms.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
SERVE, WORKER = "serve", "worker"


@dataclass(slots=True, eq=False)
class FaultApp:
    """An app or a worker on a fixed port, over all its processes; perhaps without a guard.

    `memory_mib` has the memory of each process at its start and its end, and `exit_codes` what
    each returned that was asked to stop.
    """

    name: str
    command: str
    environment: Mapping[str, str]
    log_file: Path
    links: Links
    module: str = "slotlock"
    port: int = field(default_factory=free_port)
    memory_mib: list[tuple[float, float]] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    is_up: bool = False
    _process: subprocess.Popen[bytes] | None = None
    _log_offset: int = 0
    _start_mib: float = 0.0

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def clock_file(self) -> Path:
        """Return the file with the offset of the clock."""
        return self.log_file.with_suffix(".clock")

    async def start(self) -> None:
        """Start a process, again while a server is unavailable; raises CampaignError."""
        deadline = time.monotonic() + START_TIMEOUT_S
        self._launch()
        while not await self._is_ready():
            if time.monotonic() > deadline:
                raise CampaignError(f"{self.name} does not start: see {self.log_file}")
            if self._process is None or self._process.poll() is not None:
                self._launch()
            await asyncio.sleep(0.1)
        self._start_mib, self.is_up = self._memory_mib(), True

    def _launch(self) -> None:
        self._log_offset = self.log_file.stat().st_size if self.log_file.exists() else 0
        if not self.clock_file.exists():
            self.clock_file.write_bytes(OFFSET.pack(0.0))
        paths = (str(CLOCK_FOLDER), str(PROJECT), os.environ.get("PYTHONPATH", ""))
        environment = {
            **self.environment,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SKEWED_CLOCK_FILE": str(self.clock_file),
        }
        self._process = launch(self.command, environment, self.port, self.log_file, self.module)
        self.links.name_process_soon(self._process.pid, self.name)

    async def _is_ready(self) -> bool:
        if self.command == WORKER:
            return b"serving the admission queue" in self.log_file.read_bytes()[self._log_offset :]
        async with httpx.AsyncClient(trust_env=False, timeout=2, verify=NO_TLS) as client:
            with suppress(httpx.TransportError):
                return (await client.get(f"{self.url}/readyz")).status_code == 200
        return False

    def pause(self) -> None:
        """Let it hang, with all that it has begun."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on, as if no time had passed."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._note_memory()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if that does not end it in time."""
        if self._process is None:
            return
        self._note_memory()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = await asyncio.to_thread(self._process.wait, STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -signal.SIGKILL
        self.exit_codes.append(code)

    def _note_memory(self) -> None:
        if self.is_up:
            self.memory_mib.append((self._start_mib, self._memory_mib()))
        self.is_up = False

    def _memory_mib(self) -> float:
        """Return the resident memory, or 0 without /proc."""
        with suppress(OSError, IndexError):
            pid = self._process.pid if self._process else 0
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB
        return 0.0

    def set_clock(self, offset_s: float) -> None:
        """Set the clock so many seconds ahead, or behind if negative."""
        with self.clock_file.open("r+b") as file:
            file.write(OFFSET.pack(offset_s))
