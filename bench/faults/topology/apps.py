"""The apps and workers of a campaign, each with a clock that can be skewed."""

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.app_process import PROJECT, launch
from bench.faults.topology.links import Links
from bench.soak.processes.apps import SoakApp, SoakWorker

CLOCK_FOLDER = Path(__file__).parent / "skewed_clock"
OFFSET = struct.Struct("d")


@dataclass(slots=True, kw_only=True)
class FaultApp(SoakApp):
    """An app behind the links, with a clock of its own, and perhaps without one of its guards."""

    links: Links
    module: str = "slotlock"

    @property
    def name(self) -> str:
        """Return the name for the output and for links."""
        return f"app{self.index}"

    def _launch(self) -> None:
        self._log_offset = _log_size(self)
        self.process = _launch_with_clock(self, self.module, self.links)


@dataclass(slots=True, kw_only=True)
class FaultWorker(SoakWorker):
    """A worker behind the links, with a clock of its own."""

    links: Links
    module: str = "slotlock"

    def _launch(self) -> None:
        self._log_offset = _log_size(self)
        self.process = _launch_with_clock(self, self.module, self.links)


def _log_size(app: SoakApp) -> int:
    return app.log_file.stat().st_size if app.log_file.exists() else 0


def _launch_with_clock(app: SoakApp, module: str, links: Links) -> "subprocess.Popen[bytes]":
    clock_file = clock_file_of(app)
    if not clock_file.exists():
        clock_file.write_bytes(OFFSET.pack(0.0))
    paths = (str(CLOCK_FOLDER), str(PROJECT), os.environ.get("PYTHONPATH", ""))
    environment = {
        **app.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "SKEWED_CLOCK_FILE": str(clock_file),
    }
    process = launch(app.command, environment, app.port, app.log_file, module)
    links.name_process_soon(process.pid, app.name)
    return process


def clock_file_of(app: SoakApp) -> Path:
    """Return the file with the offset of a process's clock."""
    return app.log_file.with_suffix(".clock")


def set_clock(app: SoakApp, offset_s: float) -> None:
    """Set the clock of a process so many seconds ahead, or behind if negative."""
    with clock_file_of(app).open("r+b") as file:
        file.write(OFFSET.pack(offset_s))
