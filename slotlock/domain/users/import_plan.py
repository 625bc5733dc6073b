"""Plan an import of users: which accounts are created, updated or unchanged."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from slotlock.domain.shared.values import value_object
from slotlock.domain.users.import_file import InvalidUserFile, LineProblem, UserRow
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, User

# MongoDB updates an index for each group and each search word that an import adds or removes.
# One transaction has room for this many updates (ADR 0018).
MAX_INDEX_CHANGES = 100_000
TOO_MANY_INDEX_CHANGES = (
    f"The file changes more than {MAX_INDEX_CHANGES} groups and words of names and addresses. "
    "Please split it before this line."
)

SearchWordsOf = Callable[[str, str], Collection[str]]


@value_object
class NewUser:
    """An account to create; the user has no password yet."""

    email: str
    name: str
    groups: tuple[str, ...]


@value_object
class UserUpdate:
    """An account to change: the user as loaded, and their new name and groups."""

    before: User
    name: str
    groups: tuple[str, ...]

    @property
    def after(self) -> User:
        """Return the user after the import."""
        return replace(self.before, name=self.name, groups=self.groups)


@value_object
class ImportPlan:
    """The accounts that an import creates and updates, and the number of unchanged ones."""

    created: tuple[NewUser, ...]
    updated: tuple[UserUpdate, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Return whether the import has nothing to write."""
        return not (self.created or self.updated)


@value_object
class ImportResult:
    """The number of accounts that an import wrote, or would write in a dry run."""

    created: int
    updated: int
    unchanged: int
    dry_run: bool


@value_object
class ImportBusy:
    """Other requests changed the same users repeatedly; nothing was imported, retry later."""

    retry_after_ms: int


@value_object
class ImportTooLarge:
    """The import does not fit into one transaction; nothing was imported, split the file."""


ImportOutcome = ImportResult | ImportBusy | ImportTooLarge


def plan_import(
    rows: Sequence[UserRow], existing_users: Mapping[str, User], search_words_of: SearchWordsOf
) -> ImportPlan | InvalidUserFile:
    """Plan the import of these rows.

    `existing_users` holds the accounts of the rows by e-mail address. `search_words_of` returns the
    words by which a user with this name and address is found.
    """
    created, updated, index_changes = [], [], 0
    for row in rows:
        before = existing_users.get(row.email)
        if before is None:
            name = row.name or row.email.partition("@")[0][:MAX_USER_NAME_LENGTH]
            created.append(NewUser(row.email, name, row.groups or ()))
            index_changes += len(search_words_of(name, row.email)) + len(row.groups or ())
        elif (update := _to_update(before, row)) is not None:
            updated.append(update)
            index_changes += _count_index_changes(update, search_words_of)
        if index_changes > MAX_INDEX_CHANGES:
            return InvalidUserFile((LineProblem(row.line, None, TOO_MANY_INDEX_CHANGES),), 1)
    unchanged = len(rows) - len(created) - len(updated)
    return ImportPlan(tuple(created), tuple(updated), unchanged)


def _to_update(before: User, row: UserRow) -> UserUpdate | None:
    name = before.name if row.name is None else row.name
    groups = before.groups if row.groups is None else row.groups
    if (name, groups) == (before.name, before.groups):
        return None
    return UserUpdate(before, name, groups)


def _count_index_changes(update: UserUpdate, search_words_of: SearchWordsOf) -> int:
    before = update.before
    count = len(set(before.groups) ^ set(update.groups))
    if update.name != before.name:
        old_words = set(search_words_of(before.name, before.email))
        count += len(old_words ^ set(search_words_of(update.name, before.email)))
    return count
