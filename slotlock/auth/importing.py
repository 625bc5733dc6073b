"""Importing people from a file: read it, look, plan, write all of it or nothing."""

import asyncio
import random
from time import monotonic

from slotlock.auth.accounts import normalised
from slotlock.auth.auth import Auth
from slotlock.domain.people import UserId
from slotlock.domain.people_import import BadFile, Row, read_people
from slotlock.domain.people_plan import (
    ImportBusy,
    Imported,
    ImportOutcome,
    ImportPlan,
    plan_import,
)

# What a process that was killed in an import holds is free after 5 s.
KEEP_TRYING_S = 10.0
PAUSE_S = (0.05, 0.25)
BUSY_RETRY_AFTER_MS = 5_000


async def import_people(
    auth: Auth, body: bytes, *, dry_run: bool, by: UserId | None = None
) -> ImportOutcome | BadFile:
    """Make people as a file says, whole or not at all; a dry run only tells what it would do.

    The same file a second time changes nothing. `by` is None for the command line.
    """
    # Ten thousand addresses take most of a second to check, in which others are served.
    rows = await asyncio.to_thread(read_people, body, normalised)
    if isinstance(rows, BadFile):
        return rows
    deadline = monotonic() + KEEP_TRYING_S
    while True:
        plan = await _look_and_write(auth, rows, by, dry_run=dry_run)
        if plan is not None:
            return Imported(len(plan.created), len(plan.updated), plan.unchanged, dry_run)
        if monotonic() > deadline:
            return ImportBusy(BUSY_RETRY_AFTER_MS)
        await asyncio.sleep(random.uniform(*PAUSE_S))  # noqa: S311


async def _look_and_write(
    auth: Auth, rows: tuple[Row, ...], by: UserId | None, *, dry_run: bool
) -> ImportPlan | None:
    """What was written, or would be; None when somebody else wrote first."""
    imports = auth.users.imports
    seen = await imports.look([row.email for row in rows])
    plan = plan_import(rows, seen.by_email)
    done = dry_run or plan.empty or await imports.commit(plan, seen, auth.now(), by)
    return plan if done else None
