"""Generates and compiles the TypeScript example."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.packages import install
from conformance.examples.programs import EXAMPLES, Program

SOURCE = EXAMPLES / "typescript"
GENERATED = Path("src/generated.ts")
TOOL_TIMEOUT_S = 120.0
# The generated types, and the compiler.
CHECK_COUNT = 2


def prepare(home: Path) -> None:
    """Copy the example to `home` and install its packages; raises InstallError.

    From `home` the schema must be two folders up, as from the source.
    """
    install(SOURCE, home)
    shutil.rmtree(home / "src", ignore_errors=True)
    shutil.copytree(SOURCE / "src", home / "src")


def failed_checks(home: Path) -> list[str]:
    """Generate the types and compile the programs in `home`, and return what failed."""
    failures = []
    problem = run_tool(home, "graphql-codegen", "--silent")
    if problem:
        failures.append(problem)
    elif (home / GENERATED).read_bytes() != (SOURCE / GENERATED).read_bytes():
        failures.append(
            f"{GENERATED} does not fit schema.graphql: "
            "run `npm ci --ignore-scripts && npm run codegen` in examples/typescript"
        )
    problem = run_tool(home, "tsc")
    return [*failures, problem] if problem else failures


def programs(home: Path) -> list[Program]:
    """Return the programs that are compiled in the folder `home`."""
    return [
        Program(f"example, {library}", ("node", "build/main.js", library), home)
        for library in ("urql", "apollo")
    ]


def run_tool(home: Path, tool: str, *arguments: str, cwd: Path | None = None) -> str | None:
    """Run a tool of the packages in `home`, there or elsewhere; return what is wrong, or None."""
    try:
        completed = subprocess.run(
            (str(home / "node_modules" / ".bin" / tool), *arguments),
            cwd=cwd or home,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=TOOL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{tool} did not end within {TOOL_TIMEOUT_S:g} s"
    if completed.returncode == 0:
        return None
    output = " | ".join((completed.stdout + completed.stderr).strip().splitlines()[:5])
    return f"{tool} ended with {completed.returncode}: {output}"
