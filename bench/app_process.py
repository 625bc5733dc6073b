"""slotlock as a child process with the given settings and no others."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parent.parent


def launch(
    command: str,
    environment: Mapping[str, str],
    port: int,
    log_file: Path,
    module: str = "slotlock",
) -> subprocess.Popen[bytes]:
    """Start `slotlock <command>`, or that of a variant module, and append its output to the log."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")
    }
    with log_file.open("ab") as log:
        return subprocess.Popen(
            (sys.executable, "-m", module, command),
            cwd=PROJECT,
            env={**inherited, **environment, "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def graphql_url(port: int, scheme: str = "http") -> str:
    """Return the GraphQL address, or with the scheme `ws` that of WebSockets."""
    return f"{scheme}://127.0.0.1:{port}/graphql"
