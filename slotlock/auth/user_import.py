"""Importing people from a file: read it, look, plan, write all of it or nothing."""

import asyncio
import random
from time import monotonic

from slotlock.auth.accounts import normalize_email
from slotlock.auth.container import Auth
from slotlock.domain.users.import_file import InvalidUserFile, parse_user_file
from slotlock.domain.users.import_plan import (
    ImportBusy,
    ImportOutcome,
    ImportResult,
    ImportTooLarge,
    plan_import,
)
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.users.documents import search_words_of
from slotlock.infrastructure.mongo.users.imports import ImportAttempt

# What a process that was killed in an import holds is free after 5 s.
RETRY_FOR_S = 10.0
RETRY_DELAY_S = (0.05, 0.25)
BUSY_RETRY_AFTER_MS = 5_000


async def import_users(
    auth: Auth, body: bytes, *, dry_run: bool, actor_id: UserId | None = None
) -> ImportOutcome | InvalidUserFile:
    """Make people as a file says, whole or not at all; a dry run only tells what it would do.

    The same file a second time changes nothing. `by` is None for the command line.
    """
    # Ten thousand addresses take most of a second to check, in which others are served.
    rows = await asyncio.to_thread(parse_user_file, body, normalize_email)
    if isinstance(rows, InvalidUserFile):
        return rows
    imports, emails = auth.users.imports, [row.email for row in rows]
    deadline = monotonic() + RETRY_FOR_S
    seen = await imports.load_snapshot(emails)
    while True:
        plan = await asyncio.to_thread(plan_import, rows, seen.users_by_email, search_words_of)
        if isinstance(plan, InvalidUserFile):
            return plan
        done = dry_run or plan.is_empty
        attempt = (
            ImportAttempt.WRITTEN
            if done
            else await imports.commit(plan, seen, auth.now(), actor_id)
        )
        if attempt is ImportAttempt.WRITTEN:
            return ImportResult(len(plan.created), len(plan.updated), plan.unchanged, dry_run)
        await asyncio.sleep(random.uniform(*RETRY_DELAY_S))  # noqa: S311
        before, seen = seen, await imports.load_snapshot(emails)
        overtaken = attempt is ImportAttempt.CONFLICT or seen != before
        if attempt is ImportAttempt.TOO_LARGE and not overtaken:
            return ImportTooLarge()
        if monotonic() > deadline:
            return ImportBusy(BUSY_RETRY_AFTER_MS) if overtaken else ImportTooLarge()
