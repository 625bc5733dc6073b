"""The app as a child process on a fixed port, in the development or production profile."""

import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.app_process import free_port, graphql_url, launch
from slotlock.devserver.embedded import EmbeddedServers

SECRET = secrets.token_hex(32)
ADMIN_EMAIL, ADMIN_PASSWORD = "admin@slotlock.test", secrets.token_hex(16)
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 45.0
DEVELOPMENT, PRODUCTION = "dev", "serve"


class ConformanceAppError(Exception):
    """The app does not start; the text is the reason."""


def database_url(servers: EmbeddedServers, name: str) -> str:
    """Return the address of a database with this name."""
    return servers.mongo_url.replace("/?", f"/{name}?", 1)


@dataclass(slots=True)
class ConformanceApp:
    """One app on one port, over all its processes; `profile` is the command that starts it.

    `module` is `slotlock` or a variant of it.
    """

    profile: str
    environment: Mapping[str, str]
    log_file: Path
    module: str = "slotlock"
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address of GraphQL over HTTP."""
        return graphql_url(self.port)

    @property
    def socket_url(self) -> str:
        """Return the address of GraphQL over WebSocket."""
        return graphql_url(self.port, "ws")

    def start(self) -> None:
        """Start a process and wait until it is ready; raises ConformanceAppError."""
        self._process = launch(
            self.profile, self.environment, self.port, self.log_file, self.module
        )
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                lines = self.log_file.read_text(errors="replace").strip().splitlines()[-5:]
                raise ConformanceAppError(
                    f"slotlock {self.profile} does not start: {' | '.join(lines)}"
                )
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            response = httpx.get(f"http://127.0.0.1:{self.port}/readyz", trust_env=False)
            return response.status_code == 200
        return False

    def kill(self) -> None:
        """Send SIGKILL, which breaks every socket without a close message."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Send SIGTERM, for a graceful shutdown."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT_S)
        self._process.kill()
        self._process.wait()


@contextmanager
def running(
    profile: str,
    servers: EmbeddedServers,
    database_name: str,
    redis_database: int,
    folder: Path,
    module: str = "slotlock",
    **settings: str,
) -> Iterator[ConformanceApp]:
    """Run an app on these databases; raises ConformanceAppError.

    With a shared Redis database, the worker of one app would take requests of the other.
    """
    environment = {
        "SLOTLOCK_MONGO_URL": database_url(servers, database_name),
        "SLOTLOCK_REDIS_URL": servers.redis_url.removesuffix("/0") + f"/{redis_database}",
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_ADMIN_EMAIL": ADMIN_EMAIL,
        "SLOTLOCK_ADMIN_PASSWORD": ADMIN_PASSWORD,
        "SLOTLOCK_DATA_DIR": str(folder / database_name),
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
        **settings,
    }
    app = ConformanceApp(profile, environment, folder / f"{database_name}.log", module)
    try:
        app.start()
        yield app
    finally:
        app.kill()
