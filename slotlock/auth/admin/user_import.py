"""Import users from a file, or make them those of a file of all users: all or none."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TypeVar

from slotlock.auth.container import Auth
from slotlock.domain.shared.tables.file_problems import InvalidFile, ProblemCollector
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.columns import SUBJECT
from slotlock.domain.user_files.plan import (
    NO_CHOICES,
    ImportBusy,
    ImportOutcome,
    ImportPlan,
    ImportTooLarge,
    plan_import,
    preview_rows,
    to_result,
)
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.sync_plan import plan_sync
from slotlock.domain.user_files.user_file import UserFile, UserRow, parse_user_file
from slotlock.domain.users.groups import similar_groups
from slotlock.domain.users.identity import Identity, parse_subject
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.users.imports import ImportAttempt, UserSnapshot
from slotlock.infrastructure.mongo.users.user_documents import new_login_name

# MongoDB aborts the transaction of a killed process after 5 s: retry for longer than that.
RETRY_FOR_S = 10.0
RETRY_DELAY_S = (0.05, 0.25)
BUSY_RETRY_AFTER_MS = 5_000
INVALID_SUBJECT = (
    "This is no subject of a provider of this server. Please write the id of the provider, a colon "
    "and the subject, such as school:4711."
)
Refused = TypeVar("Refused")


@value_object
class TooManyGone:
    """A sync would ban more of the managed members than its limit; nothing was written."""

    plan: ImportPlan


async def import_users(
    auth: Auth,
    body: bytes,
    *,
    dry_run: bool,
    choices: Choices = NO_CHOICES,
    caller: Caller | None = None,
    addresses_of_guardians: bool = False,
) -> ImportOutcome | InvalidFile:
    """Create and update the users in the file, all or none; a dry run writes nothing.

    Importing the same file again changes nothing. `caller` is None for the command line. Accounts
    that somebody registered change only by choice. The addresses may be those of guardians.

    Raises:
        CommitUnknownError: MongoDB is unavailable now, and the file may be imported.
    """
    # In a thread: it takes most of a second to validate 10,000 addresses.
    file = await asyncio.to_thread(
        parse_user_file, body, addresses_of_guardians=addresses_of_guardians
    )
    if isinstance(file, InvalidFile):
        return file
    rows = _identified_rows(auth, file)
    if isinstance(rows, InvalidFile):
        return rows
    load = _load_snapshot(auth, file, rows)

    def plan(snapshot: UserSnapshot) -> ImportPlan | InvalidFile:
        return plan_import(
            rows,
            snapshot.users_by_login_name,
            caller,
            choices=choices,
            linked=snapshot.linked,
            resources=snapshot.resources,
        )

    outcome = await _plan_and_write(auth, load, plan, caller, dry_run=dry_run)
    if isinstance(outcome, InvalidFile):
        return outcome.with_headers(file.headers)
    if not isinstance(outcome, ImportPlan):
        return outcome
    imports = auth.repositories.user_imports
    named = [*outcome.login_names, *outcome.guardian_names]
    with nullcontext() if dry_run else after_write():
        leavers = await imports.find_leavers(named, file.groups)
        similar = similar_groups(file.groups, await imports.find_groups())
    preview = preview_rows(file.rows)
    return to_result(outcome, file.ignored_columns, leavers, similar, preview, dry_run=dry_run)


async def sync_users(
    auth: Auth,
    file: UserFile,
    *,
    dry_run: bool,
    choices: Choices,
    bans_gone: bool,
    gone_limit: int,
) -> ImportPlan | TooManyGone | ImportBusy | ImportTooLarge | InvalidFile:
    """Make the accounts those of a file of all users, all or none. Return what changed.

    A sync of the same file again changes nothing. `gone_limit` is the percentage of the managed
    members that may be banned, because a file that was cut off does not name its last users.
    """
    rows = _identified_rows(auth, file)
    if isinstance(rows, InvalidFile):
        return rows
    load = _load_snapshot(auth, file, rows, with_managed=True)

    def plan(snapshot: UserSnapshot) -> ImportPlan | TooManyGone | InvalidFile:
        found = plan_sync(
            rows,
            snapshot.users_by_login_name,
            snapshot.managed,
            snapshot.banned_by_sync,
            choices=choices,
            bans_gone=bans_gone,
            linked=snapshot.linked,
            resources=snapshot.resources,
        )
        if isinstance(found, InvalidFile):
            return found.with_headers(file.headers)
        if dry_run or found.membership is None:
            return found
        return TooManyGone(found) if found.membership.exceeds(gone_limit) else found

    return await _plan_and_write(auth, load, plan, None, dry_run=dry_run)


def _identified_rows(auth: Auth, file: UserFile) -> list[UserRow] | InvalidFile:
    """Return the rows with the identities of their subjects, or the problems of the subjects.

    A row without a login name has a made one, in case that its child is not known yet.
    """
    providers = auth.sign_on.providers if auth.sign_on else []
    issuers = {each.id: each.issuer for each in providers}
    rows, problems, seen = list[UserRow](), ProblemCollector(), dict[Identity, int]()
    for row in file.rows:
        identity = parse_subject(row.subject, issuers) if row.subject else None
        if row.subject and identity is None:
            code = ImportProblem.INVALID_SUBJECT
            problems.add(row.line, SUBJECT, INVALID_SUBJECT, code)
        elif identity and (first_line := seen.setdefault(identity, row.line)) != row.line:
            message = f"Line {first_line} has the same user."
            problems.add(row.line, SUBJECT, message, ImportProblem.SAME_USER, line=first_line)
        login_name = row.login_name or new_login_name()
        rows.append(replace(row, identity=identity, login_name=login_name))
    return problems.to_invalid_file().with_headers(file.headers) if problems.count else rows


def _load_snapshot(
    auth: Auth, file: UserFile, rows: Sequence[UserRow], *, with_managed: bool = False
) -> Callable[[], Awaitable[UserSnapshot]]:
    """Return what loads the accounts that a file is about."""
    return partial(
        auth.repositories.user_imports.load_snapshot,
        file.login_names,
        [row.identity for row in rows if row.identity is not None],
        with_managed=with_managed,
        with_dependents=file.has_guardians,
        with_resources=file.has_leaders,
    )


async def _plan_and_write(
    auth: Auth,
    load: Callable[[], Awaitable[UserSnapshot]],
    make_plan: Callable[[UserSnapshot], ImportPlan | Refused],
    caller: Caller | None,
    *,
    dry_run: bool,
) -> ImportPlan | ImportBusy | ImportTooLarge | Refused:
    """Plan and write, again while others change the same users. Return the plan, or why not."""
    imports, deadline = auth.repositories.user_imports, monotonic() + RETRY_FOR_S
    snapshot = await load()
    while True:
        plan = await asyncio.to_thread(make_plan, snapshot)
        if not isinstance(plan, ImportPlan) or dry_run or plan.is_empty:
            return plan
        actor_id = caller.user_id if caller else None
        attempt = await imports.commit(plan, snapshot, auth.now(), actor_id)
        if attempt is ImportAttempt.WRITTEN:
            for update in plan.updated:
                if update.is_claim:
                    auth.session_streams.session_changed(update.before.id)
            return plan
        await asyncio.sleep(random.uniform(*RETRY_DELAY_S))  # noqa: S311
        previous, snapshot = snapshot, await load()
        has_conflict = attempt is ImportAttempt.CONFLICT or snapshot != previous
        if attempt is ImportAttempt.TOO_LARGE and not has_conflict:
            return ImportTooLarge()
        if monotonic() > deadline:
            # A slow machine says nothing of the size of the file.
            is_busy = has_conflict or attempt is ImportAttempt.TIMED_OUT
            return ImportBusy(BUSY_RETRY_AFTER_MS) if is_busy else ImportTooLarge()
