"""Runs the scripts in node/, with the pinned packages."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "node"
MIN_NODE_VERSION = 20
SCRIPT_TIMEOUT_S = 120.0


class NodeError(Exception):
    """Node is missing or too old, or a script failed; the text is the reason."""


def check_version() -> None:
    """Check that npm and a recent Node are on PATH; raises NodeError."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise NodeError(
                f"{tool} is missing: Node {MIN_NODE_VERSION} or newer is needed, with npm"
            )
    completed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    version = completed.stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < MIN_NODE_VERSION:
        raise NodeError(f"Node {version} is too old: {MIN_NODE_VERSION} or newer is needed")


def run_script(home: Path, script: str, environment: Mapping[str, str]) -> Any:
    """Run a script and return the JSON that it prints; raises NodeError."""
    try:
        completed = subprocess.run(
            ["node", script],
            cwd=home,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SCRIPT_TIMEOUT_S,
        )
        return json.loads(completed.stdout)
    except subprocess.TimeoutExpired:
        raise NodeError(f"{script} did not end within {SCRIPT_TIMEOUT_S:g} s") from None
    except ValueError:
        output = " | ".join(completed.stderr.strip().splitlines()[:5])
        raise NodeError(f"{script} printed no JSON: {output}") from None
