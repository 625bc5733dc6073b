"""Import users from a file, all of them or none."""

import asyncio
import random
from functools import partial
from time import monotonic

from slotlock.auth.container import Auth
from slotlock.domain.users.import_file import InvalidUserFile, parse_user_file
from slotlock.domain.users.import_plan import (
    ImportBusy,
    ImportOutcome,
    ImportTooLarge,
    plan_import,
    to_result,
)
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.users.imports import ImportAttempt

# MongoDB aborts the transaction of a killed process after 5 s: retry for longer than that.
RETRY_FOR_S = 10.0
RETRY_DELAY_S = (0.05, 0.25)
BUSY_RETRY_AFTER_MS = 5_000


async def import_users(
    auth: Auth, body: bytes, *, dry_run: bool, claim: bool = False, caller: Caller | None = None
) -> ImportOutcome | InvalidUserFile:
    """Create and update the users in the file, all or none; a dry run writes nothing.

    Importing the same file again changes nothing. `caller` is None for the command line. Accounts
    that registered themselves change only with `claim`, which locks out the user who did that.
    """
    # In a thread: it takes most of a second to validate 10,000 addresses.
    rows = await asyncio.to_thread(parse_user_file, body)
    if isinstance(rows, InvalidUserFile):
        return rows
    imports, emails = auth.user_imports, [row.email for row in rows]
    deadline = monotonic() + RETRY_FOR_S
    snapshot = await imports.load_snapshot(emails)
    while True:
        users = snapshot.users_by_email
        plan = await asyncio.to_thread(partial(plan_import, rows, users, caller, claim=claim))
        if isinstance(plan, InvalidUserFile):
            return plan
        result = to_result(plan, dry_run=dry_run)
        if dry_run or plan.is_empty:
            return result
        actor_id = caller.user_id if caller else None
        attempt = await imports.commit(plan, snapshot, auth.now(), actor_id)
        if attempt is ImportAttempt.WRITTEN:
            for update in plan.updated:
                if update.is_claim:
                    auth.session_streams.session_changed(update.before.id)
            return result
        await asyncio.sleep(random.uniform(*RETRY_DELAY_S))  # noqa: S311
        previous, snapshot = snapshot, await imports.load_snapshot(emails)
        has_conflict = attempt is ImportAttempt.CONFLICT or snapshot != previous
        if attempt is ImportAttempt.TOO_LARGE and not has_conflict:
            return ImportTooLarge()
        if monotonic() > deadline:
            return ImportBusy(BUSY_RETRY_AFTER_MS) if has_conflict else ImportTooLarge()
