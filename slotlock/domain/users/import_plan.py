"""Plan an import of users: which accounts are created, updated, claimed or unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slotlock.domain.shared.folding import search_words
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.administration import account_change_refusal
from slotlock.domain.users.import_file import (
    EMAIL,
    InvalidUserFile,
    LineProblem,
    ProblemCollector,
    UserRow,
)
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, Caller, User

# MongoDB updates an index for each group and each search word that an import adds or removes.
# One transaction has room for this many updates (ADR 0018).
MAX_INDEX_CHANGES = 100_000
TOO_MANY_INDEX_CHANGES = (
    f"The file changes more than {MAX_INDEX_CHANGES} groups and words of names and addresses. "
    "Please split it before this line."
)

# A claim also ends the sessions, calendar feed and team memberships of an account.
CLAIM_INDEX_CHANGES = 8
ADMIN_REQUIRED = "This address belongs to an organizer or an admin, whom only an admin can change."
ERASED = "The user with this address was erased."


@value_object
class NewUser:
    """An account to create; the user has no password yet."""

    email: str
    name: str
    groups: tuple[str, ...]


@value_object
class UserUpdate:
    """An account to change: the user as loaded, and their new name and groups.

    A claim locks out the user who registered the account: the password no longer works.
    """

    before: User
    name: str
    groups: tuple[str, ...]
    is_claim: bool = False

    @property
    def after(self) -> User:
        """Return the user after the import."""
        after = replace(self.before, name=self.name, groups=self.groups)
        return replace(after, has_password=False, self_registered=False) if self.is_claim else after


@value_object
class UnclaimedAccount:
    """A line with the address of an account that somebody registered; it does not change."""

    line: int
    user: User


@value_object
class ImportPlan:
    """The accounts that an import creates and updates, and those that it does not change."""

    created: tuple[NewUser, ...]
    updated: tuple[UserUpdate, ...]
    unchanged: int
    unclaimed: tuple[UnclaimedAccount, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the import has nothing to write."""
        return not (self.created or self.updated)


@value_object
class ImportResult:
    """The number of accounts that an import wrote, or would write in a dry run.

    Nothing was written for the unclaimed ones.
    """

    created: int
    updated: int
    unchanged: int
    dry_run: bool
    claimed: int = 0
    unclaimed: tuple[UnclaimedAccount, ...] = ()


@value_object
class ImportBusy:
    """Other requests changed the same users repeatedly; nothing was imported, retry later."""

    retry_after_ms: int


@value_object
class ImportTooLarge:
    """The import does not fit into one transaction; nothing was imported, split the file."""


def to_result(plan: ImportPlan, *, dry_run: bool) -> ImportResult:
    """Return what a plan changes."""
    claimed = sum(update.is_claim for update in plan.updated)
    updated = len(plan.updated) - claimed
    return ImportResult(
        len(plan.created), updated, plan.unchanged, dry_run, claimed, plan.unclaimed
    )


ImportOutcome = ImportResult | ImportBusy | ImportTooLarge


def plan_import(
    rows: Sequence[UserRow],
    existing_users: Mapping[str, User],
    caller: Caller | None = None,
    *,
    claim: bool = False,
) -> ImportPlan | InvalidUserFile:
    """Plan the import of these rows by a caller, who is None for the command line.

    `existing_users` holds the accounts of the rows by e-mail address. Accounts that registered
    themselves change only with `claim`: the address of a pupil does not prove that the pupil
    registered it.
    """
    created, updated, unclaimed, index_changes = [], [], [], 0
    problems = ProblemCollector()
    for row in rows:
        before = existing_users.get(row.email)
        if before is None:
            name = row.name or row.email.partition("@")[0][:MAX_USER_NAME_LENGTH]
            created.append(NewUser(row.email, name, row.groups or ()))
            index_changes += len(_search_words_of(name, row.email)) + len(row.groups or ())
        elif before.is_unclaimed and not claim:
            unclaimed.append(UnclaimedAccount(row.line, before))
        elif (update := _to_update(before, row)) is not None:
            if problem := _update_problem(caller, before):
                problems.add(row.line, EMAIL, problem)
            updated.append(update)
            index_changes += _count_index_changes(update)
        if index_changes > MAX_INDEX_CHANGES:
            return InvalidUserFile((LineProblem(row.line, None, TOO_MANY_INDEX_CHANGES),), 1)
    if problems.count:
        return problems.to_invalid_file()
    unchanged = len(rows) - len(created) - len(updated) - len(unclaimed)
    return ImportPlan(tuple(created), tuple(updated), unchanged, tuple(unclaimed))


def _update_problem(caller: Caller | None, user: User) -> str | None:
    if user.erased:
        return ERASED
    return ADMIN_REQUIRED if account_change_refusal(caller, user) else None


def _to_update(before: User, row: UserRow) -> UserUpdate | None:
    name = before.name if row.name is None else row.name
    groups = before.groups if row.groups is None else row.groups
    if (name, groups) == (before.name, before.groups) and not before.is_unclaimed:
        return None
    return UserUpdate(before, name, groups, before.is_unclaimed)


def _count_index_changes(update: UserUpdate) -> int:
    before = update.before
    count = len(set(before.groups) ^ set(update.groups))
    if update.name != before.name:
        old_words = set(_search_words_of(before.name, before.email))
        count += len(old_words ^ set(_search_words_of(update.name, before.email)))
    return count + CLAIM_INDEX_CHANGES * update.is_claim


def _search_words_of(name: str, email: str) -> list[str]:
    return search_words(f"{name} {email}")
