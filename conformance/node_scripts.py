"""What runs in Node: the pinned packages, and the scripts that use them."""

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
    """Node or what runs in it is of no use here; the text says why."""


def check_version() -> None:
    """See that there is a Node new enough, with npm. Errors: NodeError."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise NodeError(
                f"{tool} is missing: Node {MIN_NODE_VERSION} or newer is needed, with npm"
            )
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    version = told.stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < MIN_NODE_VERSION:
        raise NodeError(f"Node {version} is too old: {MIN_NODE_VERSION} or newer is needed")


def run_script(home: Path, script: str, environment: Mapping[str, str]) -> Any:
    """What a script prints as JSON. Errors: NodeError."""
    try:
        ended = subprocess.run(
            ["node", script],
            cwd=home,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SCRIPT_TIMEOUT_S,
        )
        return json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        raise NodeError(f"{script} did not end within {SCRIPT_TIMEOUT_S:g} s") from None
    except ValueError:
        said = " | ".join(ended.stderr.strip().splitlines()[:5])
        raise NodeError(f"{script} says nothing of use: {said}") from None
