"""What an import of people comes to: who is new, who changes, and who is as the file says."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from slotlock.domain.users.import_file import InvalidUserFile, LineProblem, UserRow
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, User

# What people are found by: their groups, and the words of their names and addresses. For each that
# comes or goes MongoDB changes an index; so many fit into one transaction, see ADR 0018.
MAX_INDEX_CHANGES = 100_000
TOO_MANY_INDEX_CHANGES = (
    f"At most {MAX_INDEX_CHANGES} groups and words of names and addresses come or go at once, "
    "and here it is more. Split the file before this line."
)

SearchWordsOf = Callable[[str, str], Collection[str]]


@dataclass(frozen=True, slots=True)
class NewUser:
    """Somebody whose address nobody has; without a password."""

    email: str
    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UserUpdate:
    """Somebody who is there, as they were looked at, and what they shall be called and carry."""

    before: User
    name: str
    groups: tuple[str, ...]

    @property
    def after(self) -> User:
        """The person as they shall be."""
        return replace(self.before, name=self.name, groups=self.groups)


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import writes."""

    created: tuple[NewUser, ...]
    updated: tuple[UserUpdate, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Whether everybody is as the file says."""
        return not (self.created or self.updated)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did, or would do if it were not a dry run."""

    created: int
    updated: int
    unchanged: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ImportBusy:
    """Others are changing these people all the time; nothing was imported, ask again."""

    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class ImportTooLarge:
    """There was not enough room or time for all of it, and nobody else is to blame.

    Nothing was imported; send it in parts.
    """


ImportOutcome = ImportResult | ImportBusy | ImportTooLarge


def plan_import(
    rows: Sequence[UserRow], existing_users: Mapping[str, User], search_words_of: SearchWordsOf
) -> ImportPlan | InvalidUserFile:
    """The plan for these rows, when those of their addresses that have an account are `known`.

    `words_of` a name and an address are what a person is searched by.
    """
    created, updated, marks = [], [], 0
    for row in rows:
        before = existing_users.get(row.email)
        if before is None:
            name = row.name or row.email.partition("@")[0][:MAX_USER_NAME_LENGTH]
            created.append(NewUser(row.email, name, row.groups or ()))
            marks += len(search_words_of(name, row.email)) + len(row.groups or ())
        elif (edit := _to_update(before, row)) is not None:
            updated.append(edit)
            marks += _count_index_changes(edit, search_words_of)
        if marks > MAX_INDEX_CHANGES:
            return InvalidUserFile((LineProblem(row.line, None, TOO_MANY_INDEX_CHANGES),), 1)
    unchanged = len(rows) - len(created) - len(updated)
    return ImportPlan(tuple(created), tuple(updated), unchanged)


def _to_update(before: User, row: UserRow) -> UserUpdate | None:
    name = before.name if row.name is None else row.name
    groups = before.groups if row.groups is None else row.groups
    return (
        None if (name, groups) == (before.name, before.groups) else UserUpdate(before, name, groups)
    )


def _count_index_changes(update: UserUpdate, search_words_of: SearchWordsOf) -> int:
    """How many come or go."""
    before = update.before
    turned = len(set(before.groups) ^ set(update.groups))
    if update.name != before.name:
        here, there = (search_words_of(name, before.email) for name in (before.name, update.name))
        turned += len(set(here) ^ set(there))
    return turned
