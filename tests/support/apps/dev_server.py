"""A running `slotlock dev`, started as a new developer starts it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.apps.processes import free_port
from tests.support.polling import wait_until

DEV_COMMAND = (sys.executable, "-m", "slotlock", "dev")


class DevServer:
    """A process of `slotlock dev` and what it printed."""

    def __init__(self, directory: Path, port: int, command: Sequence[str], **settings: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if "SLOTLOCK" not in name}
        own = {"PORT": str(port), "SLOTLOCK_DATA_DIR": str(directory), **settings}
        self.url = f"http://127.0.0.1:{port}"
        self.data = directory
        self.output = directory / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                env={**inherited, **own},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Ctrl-C" in self.output.read_text(), "the banner is printed", 100)

    def sign_in(self) -> tuple[str, str]:
        """Return the admin's e-mail address and password from the banner."""
        printed = re.search(r"sign-in +(\S+) +(\S+)", self.output.read_text())
        assert printed is not None
        return printed[1], printed[2]


@contextmanager
def run_dev_server(
    directory: Path, command: Sequence[str] = DEV_COMMAND, **settings: str
) -> Iterator[DevServer]:
    """Run `slotlock dev`. Stop it with SIGINT, like Ctrl-C, if the test did not."""
    directory.mkdir(exist_ok=True)
    server = DevServer(directory, free_port(), command, **settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGINT)
        server.process.wait(40)
