"""Importing people from a file: read it, look, plan, write all of it or nothing."""

import asyncio
import random
from time import monotonic

from slotlock.auth.accounts import normalised
from slotlock.auth.auth import Auth
from slotlock.domain.people import UserId
from slotlock.domain.people_import import BadFile, read_people
from slotlock.domain.people_plan import (
    ImportBusy,
    Imported,
    ImportOutcome,
    TooMuchAtOnce,
    plan_import,
)
from slotlock.stores.people_imports import Attempt
from slotlock.stores.user_documents import words_of

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
    imports, emails = auth.users.imports, [row.email for row in rows]
    deadline = monotonic() + KEEP_TRYING_S
    seen = await imports.look(emails)
    while True:
        plan = await asyncio.to_thread(plan_import, rows, seen.by_email, words_of)
        if isinstance(plan, BadFile):
            return plan
        done = dry_run or plan.empty
        attempt = Attempt.WRITTEN if done else await imports.commit(plan, seen, auth.now(), by)
        if attempt is Attempt.WRITTEN:
            return Imported(len(plan.created), len(plan.updated), plan.unchanged, dry_run)
        await asyncio.sleep(random.uniform(*PAUSE_S))  # noqa: S311
        before, seen = seen, await imports.look(emails)
        overtaken = attempt is Attempt.OVERTAKEN or seen != before
        if attempt is Attempt.TOO_MUCH and not overtaken:
            return TooMuchAtOnce()
        if monotonic() > deadline:
            return ImportBusy(BUSY_RETRY_AFTER_MS) if overtaken else TooMuchAtOnce()
