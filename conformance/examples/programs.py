"""The programs of examples/, and what they print if every step succeeds."""

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.app_process import graphql_url
from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, ConformanceApp
from conformance.examples.proxy import LOST_RESPONSES, LossyProxy, lossy_proxy

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
# For 20 s of them, the programs wait for the response that never arrives.
PROGRAM_TIMEOUT_S = 80.0
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


async def failed_parts(all_programs: Sequence[Program], app: ConformanceApp) -> list[list[str]]:
    """Run the programs at the same time, and return what failed in each.

    Each has a lossy proxy of its own in front of the app, which has short tokens.
    """
    return await asyncio.gather(*(_failed_parts(program, app) for program in all_programs))


async def _failed_parts(program: Program, app: ConformanceApp) -> list[str]:
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
        communication = asyncio.create_task(process.communicate())
        _, unfinished = await asyncio.wait({communication}, timeout=PROGRAM_TIMEOUT_S)
        if unfinished:
            process.kill()
        output, errors = await communication
    failures = missing_parts(output.decode(), proxy)
    if unfinished:
        failures.append(f"the program did not end within {PROGRAM_TIMEOUT_S:g} s")
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
