"""Installs a lock file with pip, and shows the progress in a few lines.

    python tools/install_lock.py requirements-run.lock

It runs before anything is installed, so it imports the standard library only. On a terminal one
line shows what pip is doing; elsewhere, such as in a log, every tenth package has a line.
"""

import os
import re
import selectors
import subprocess
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import IO

PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
HASHED = ("--require-hashes", "--progress-bar", "off", "--requirement")
TICK_S = 0.5
LOGGED_PACKAGES = 10
SHOWN_LINES_OF_ERROR = 30
MAX_WIDTH = 78

PINNED = re.compile(r"^[A-Za-z0-9][\w.-]*==", re.MULTILINE)
# pip decides about each pinned package in one of these lines.
DECIDED = re.compile(r"(?:Collecting|Requirement already satisfied:|Ignoring) ([\w.-]+)")
DOWNLOADED = re.compile(r"\s*(?:Downloading|Using cached) \S+ (\(.+ [kM]B\))")
INSTALLING = re.compile(r"Installing collected packages: (.+)")


class Progress:
    """Shows the steps of pip on one line of a terminal, or on some lines of a log."""

    def __init__(self, total: int, output: IO[str]) -> None:
        self._total = total
        self._output = output
        self._is_terminal = output.isatty()
        self._started_at = monotonic()
        self._logged = 0
        self._decided = 0
        self._installing = 0
        self._name = ""
        self._installed_before = 0

    def read(self, line: str) -> None:
        """Take a line of pip into account."""
        if decided := DECIDED.match(line):
            self._decided += 1
            self._name = decided[1]
            self._show(f"{self._decided} of {self._total} packages: {self._name}", self._decided)
        elif downloaded := DOWNLOADED.match(line):
            step = f"{self._decided} of {self._total} packages: {self._name} {downloaded[1]}"
            # A large package takes long, so a log has a line for it, too.
            self._show(f"downloading {step}", self._decided, is_due="MB" in downloaded[1])
        elif installing := INSTALLING.match(line):
            self._installing = len(installing[1].split(", "))
            self._installed_before, self._logged = _count_installed(), 0
            self._show(f"unpacking {self._installing} packages", 0, is_due=True)

    def tick(self) -> None:
        """Show how far pip is with unpacking, of which it prints nothing."""
        if self._installing:
            count = max(_count_installed() - self._installed_before, 0)
            self._show(f"unpacked {count} of {self._installing} packages", count)

    def end(self, summary: str) -> None:
        """Print the last line."""
        seconds = monotonic() - self._started_at
        clear = f"\r{' ' * MAX_WIDTH}\r" if self._is_terminal else ""
        print(f"{clear}{summary} in {seconds:.0f} s", file=self._output, flush=True)

    def _show(self, step: str, count: int, *, is_due: bool = False) -> None:
        if self._is_terminal:
            seconds = monotonic() - self._started_at
            line = f"  {seconds:3.0f} s  {step}"[:MAX_WIDTH].ljust(MAX_WIDTH)
            print(f"\r{line}", end="", file=self._output, flush=True)
        elif is_due or count >= self._logged + LOGGED_PACKAGES:
            self._logged = max(self._logged, count)
            print(f"  {step}", file=self._output, flush=True)


def install(lock: Path, output: IO[str]) -> int:
    """Install what a lock file pins, and return the exit code of pip."""
    progress = Progress(len(PINNED.findall(lock.read_text())), output)
    print(f"installing the packages of {lock} into {sys.prefix}", file=output, flush=True)
    last_lines: deque[str] = deque(maxlen=SHOWN_LINES_OF_ERROR)
    with subprocess.Popen(
        (*PIP, *HASHED, str(lock)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in _lines_and_ticks(process):
            if line is None:
                progress.tick()
            else:
                last_lines.append(line)
                progress.read(line)
    if process.returncode == 0:
        progress.end("installed")
    else:
        progress.end(f"pip failed with exit code {process.returncode}")
        print("\n".join(last_lines), file=sys.stderr)
    return process.returncode


def _lines_and_ticks(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Yield each line that pip prints, and None after each half second without one."""
    pipe = process.stdout
    if pipe is None:
        raise ValueError("pip was started without a pipe")
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(TICK_S):
                yield None
                continue
            received = os.read(pipe.fileno(), 65_536)
            if not received:
                break
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def _count_installed() -> int:
    """Return the number of packages in this environment."""
    return len(list(Path(sysconfig.get_path("purelib")).glob("*.dist-info")))


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1]), sys.stdout))
