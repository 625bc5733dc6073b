"""The programs of examples/, and what they print if every step succeeds."""

import asyncio
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.app_process import graphql_url
from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, ConformanceApp
from conformance.examples.proxy import LOST_RESPONSES, LossyProxy, lossy_proxy

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PROGRAM_TIMEOUT_S = 60.0
# Each step prints one of these lines (regular expressions).
EXPECTED_LINES = (
    "signed in: Ada",
    "listed: places left: 1",
    "booked: CONFIRMED",
    "signed in: Ben",
    "refused: SLOT_FULL",
    "waiting: position 1",
    "promoted: CONFIRMED",
    "held: HELD",
    "confirmed: CONFIRMED",
    "ticket: ANSWERED.*",
    "ticket outcome: CONFIRMED",
    "places left: 0",
    "watched: the slot is canceled",
)
# The steps, the lost responses and the exit code.
PART_COUNT = len(EXPECTED_LINES) + len(LOST_RESPONSES) + 1


@dataclass(frozen=True, slots=True)
class Program:
    """A program of examples/, and the command that runs it in the folder `home`."""

    name: str
    command: tuple[str, ...]
    home: Path


PYTHON_PROGRAM = Program(
    "example, Python", (sys.executable, "-m", "slotlock_example"), EXAMPLES / "python"
)


async def failed_parts(program: Program, app: ConformanceApp) -> list[str]:
    """Run a program over a lossy proxy against an app with short tokens; return what failed."""
    async with lossy_proxy(app.port) as proxy:
        process = await asyncio.create_subprocess_exec(
            *program.command,
            cwd=program.home,
            env={
                **os.environ,
                "SLOTLOCK_URL": graphql_url(proxy.port),
                "SLOTLOCK_ADMIN_EMAIL": ADMIN_EMAIL,
                "SLOTLOCK_ADMIN_PASSWORD": ADMIN_PASSWORD,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PROGRAM_TIMEOUT_S):
                output, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return [f"the program did not end within {PROGRAM_TIMEOUT_S:g} s"]
    failures = missing_parts(output.decode(), proxy)
    if process.returncode or failures:
        last_lines = (output + errors).decode().strip().splitlines()[-5:]
        failures.append(f"ended with {process.returncode}: {' | '.join(last_lines)}")
    return failures


def missing_parts(output: str, proxy: LossyProxy) -> list[str]:
    """Return the steps that were not printed, and the disturbances that did not happen."""
    failures = [
        f"no line like {line!r}"
        for line in EXPECTED_LINES
        if not re.search(f"^{line}$", output, re.MULTILINE)
    ]
    failures += [
        f"no response to {mutation.decode().removesuffix('(')} was lost"
        for mutation in LOST_RESPONSES
        if mutation not in proxy.lost
    ]
    return failures
