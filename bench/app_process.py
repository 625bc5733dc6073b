"""slotlock as a child process with the given settings and no others, and ports for servers."""

import os
import random
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PROJECT = Path(__file__).parent.parent
# Below the range of outgoing connections, of which one could take the port of a dead server.
PORTS = (20_000, 32_000)


def free_port() -> int:
    """Return a free port that no outgoing connection takes."""
    while True:
        port = random.SystemRandom().randint(*PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def inherited_environment() -> dict[str, str]:
    """Return the environment without settings of slotlock, which must not reach a child."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}


def import_path(project: Path) -> dict[str, str]:
    """Return PYTHONPATH with the packages of a checkout. Only those of this one are installed."""
    return {"PYTHONPATH": os.pathsep.join(map(str, project.glob("packages/*/src")))}


def launch(
    command: str,
    environment: Mapping[str, str],
    port: int,
    log_file: Path,
    module: str = "slotlock",
    project: Path = PROJECT,
) -> subprocess.Popen[bytes]:
    """Start `slotlock <command>`, or that of a variant module, and append its output to the log."""
    with log_file.open("ab") as log:
        return subprocess.Popen(
            (sys.executable, "-m", module, command),
            cwd=project,
            env={
                **inherited_environment(),
                **import_path(project),
                **environment,
                "PORT": str(port),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def graphql_url(port: int, scheme: str = "http") -> str:
    """Return the GraphQL address, or with the scheme `ws` that of WebSockets."""
    return f"{scheme}://127.0.0.1:{port}/graphql"
