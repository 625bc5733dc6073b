"""Processes of the app, started as an operator starts them: with settings from the environment."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import httpx
from bson import ObjectId

from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.polling import wait_until

# Each resting app polls all partitions. Two show what several do.
QUEUE_PARTITIONS = 2
SECRET = "a secret of the tests that is longer than 32 bytes"
ADMIN_EMAIL = "admin@slotlock.test"
ADMIN_PASSWORD = "the password of the tests"
SERVE_COMMAND = (sys.executable, "-m", "slotlock", "serve")
# Becomes a command as systemd starts it for a socket unit, with the listener of the first argument.
PASS_LISTENER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execvp(sys.argv[2], sys.argv[2:])
"""
MAX_LOG_LINES = 40
# A busy machine needs about ten seconds to start the app.
READY_TIMEOUT_S = 100.0

# The databases without documents, most with all indexes; and those of the module that runs, by
# the address of their server and the name that its tests use.
unused_databases: list[str] = []
lent_databases: dict[tuple[str, str], str] = {}

# Ports that this process gave away: no other process is given them until it ends.
_reserved_ports: list[socket.socket] = []


def free_port() -> int:
    """Return a port on which only a server that the caller starts will listen.

    It stays bound. A server, which sets SO_REUSEADDR, may bind it nevertheless: nobody listens.
    """
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _reserved_ports.append(reserved)
    return reserved.getsockname()[1]  # type: ignore[no-any-return]


def named_database_url(servers: EmbeddedServers, name: str) -> str:
    """Return the URL of the database that has this name on the test servers."""
    return servers.mongo_url.replace("/?", f"/{name}?", 1)


def database_url(servers: EmbeddedServers, name: str) -> str:
    """Return the URL of the database that the tests of a module know by this name.

    The first of them finds it empty. Its real name differs: see `empty_database`.
    """
    key = (servers.mongo_url, name)
    if key not in lent_databases:
        lent_databases[key] = take_database()
    return named_database_url(servers, lent_databases[key])


def take_database() -> str:
    """Return the name of a database without documents."""
    return unused_databases.pop() if unused_databases else f"empty{ObjectId()}"


def app_environment(servers: EmbeddedServers, database: str) -> dict[str, str]:
    """Return the settings of an app on these servers."""
    return {
        "SLOTLOCK_MONGO_URL": database_url(servers, database),
        "SLOTLOCK_REDIS_URL": servers.redis_url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_ADMIN_EMAIL": ADMIN_EMAIL,
        "SLOTLOCK_ADMIN_PASSWORD": ADMIN_PASSWORD,
        "SLOTLOCK_QUEUE_PARTITIONS": str(QUEUE_PARTITIONS),
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
        "SLOTLOCK_REDIS_BUDGET_MS": "1000",  # the machine may be busy
    }


def named_environment(servers: EmbeddedServers, database: str) -> dict[str, str]:
    """Return the settings of an app whose database has this name."""
    url = named_database_url(servers, database)
    return {**app_environment(servers, database), "SLOTLOCK_MONGO_URL": url}


def app_settings(servers: EmbeddedServers, database: str, **others: Any) -> Settings:
    """Return the settings of an app on these servers that runs in the process of a test."""
    return Settings(
        mongo_url=database_url(servers, database),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
        **others,
    )


# The log files of all apps of this test process, to be shown with a failure.
_log_files: list[Path] = []


def recent_app_logs(since: float) -> str:
    """Return the last lines of the app logs that changed since this time."""
    parts: list[str] = []
    for log_file in _log_files:
        if log_file.exists() and log_file.stat().st_mtime >= since:
            lines = log_file.read_text(errors="replace").splitlines()[-MAX_LOG_LINES:]
            parts += [f"{log_file}:", *lines]
    return "\n".join(parts)


@dataclass(frozen=True)
class AppProcess:
    """A running app."""

    url: str
    process: subprocess.Popen[bytes]
    environment: Mapping[str, str]
    log_file: Path

    def __post_init__(self) -> None:
        _log_files.append(self.log_file)

    @property
    def websocket_url(self) -> str:
        """The URL of its GraphQL WebSocket."""
        return self.url.replace("http://", "ws://") + "/graphql"

    @property
    def log(self) -> str:
        """The text of its log."""
        return self.log_file.read_text()

    def metric(self, name: str) -> float:
        """Return the value of a metric, given by its name and labels; 0 if it is absent."""
        text = httpx.get(self.url + "/metrics", trust_env=False, timeout=30).text
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def kill(self) -> None:
        """Send SIGKILL and wait, so that the process cannot clean up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Send SIGTERM, wait for the process to end and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


Pair = tuple[AppProcess, AppProcess]


def is_http_ready(app: AppProcess, path: str = "/readyz") -> bool:
    """Return whether the app listens and responds to this path with 200."""
    url = httpx.URL(app.url)
    # An `httpx.Client` for each of many calls would take most of their time.
    with closing(HTTPConnection(url.host, url.port, timeout=30)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False


@contextmanager
def app_process(
    settings: Mapping[str, str],
    directory: Path,
    command: Sequence[str] = SERVE_COMMAND,
    ready_path: str = "/readyz",
    port_variable: str = "PORT",
    cwd: Path | None = None,
    listener: socket.socket | None = None,
) -> Iterator[AppProcess]:
    """Run a process of the app, in this folder if one is given. It is ready when this yields.

    With a listener, it gets this as from a socket unit of systemd.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port = listener.getsockname()[1] if listener else free_port()
    passed = [listener.fileno()] if listener else []
    if listener:
        command = (sys.executable, "-c", PASS_LISTENER, str(listener.fileno()), *command)
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}
    log_file = directory / "app.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**own, **settings, port_variable: str(port)},
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
        )
    app = AppProcess(f"http://127.0.0.1:{port}", process, settings, log_file)

    def is_ready() -> bool:
        assert process.poll() is None, f"the app ended: {app.log}"
        return is_http_ready(app, ready_path)

    try:
        wait_until(is_ready, "the app is ready", READY_TIMEOUT_S)
        yield app
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
