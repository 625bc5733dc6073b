"""slotlock as a child process on a port of its own, with the settings it is given and no others."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parent.parent


def launch(
    command: str, environment: Mapping[str, str], port: int, log_file: Path
) -> subprocess.Popen[bytes]:
    """Start `slotlock <command>`; what it says is added to the log."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}
    with log_file.open("ab") as log:
        return subprocess.Popen(
            (sys.executable, "-m", "slotlock", command),
            cwd=PROJECT,
            env={**own, **environment, "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def graphql_url(port: int, scheme: str = "http") -> str:
    """Where its GraphQL is; with `ws`, where its WebSockets are."""
    return f"{scheme}://127.0.0.1:{port}/graphql"
