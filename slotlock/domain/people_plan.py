"""What an import of people comes to: who is new, who changes, and who is as the file says."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from slotlock.domain.people import MAX_NAME, User
from slotlock.domain.people_import import BadFile, LineProblem, Row

# What people are found by: their groups, and the words of their names and addresses. For each that
# comes or goes MongoDB changes an index; so many fit into one transaction, see ADR 0018.
MAX_MARKS = 100_000
TOO_MANY_MARKS = (
    f"At most {MAX_MARKS} groups and words of names and addresses come or go at once, "
    "and here it is more. Split the file before this line."
)

WordsOf = Callable[[str, str], Collection[str]]


@dataclass(frozen=True, slots=True)
class NewPerson:
    """Somebody whose address nobody has; without a password."""

    email: str
    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
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

    created: tuple[NewPerson, ...]
    updated: tuple[Edit, ...]
    unchanged: int

    @property
    def empty(self) -> bool:
        """Whether everybody is as the file says."""
        return not (self.created or self.updated)


@dataclass(frozen=True, slots=True)
class Imported:
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
class TooMuchAtOnce:
    """There was not enough room or time for all of it, and nobody else is to blame.

    Nothing was imported; send it in parts.
    """


ImportOutcome = Imported | ImportBusy | TooMuchAtOnce


def plan_import(
    rows: Sequence[Row], known: Mapping[str, User], words_of: WordsOf
) -> ImportPlan | BadFile:
    """The plan for these rows, when those of their addresses that have an account are `known`.

    `words_of` a name and an address are what a person is searched by.
    """
    created, updated, marks = [], [], 0
    for row in rows:
        before = known.get(row.email)
        if before is None:
            name = row.name or row.email.partition("@")[0][:MAX_NAME]
            created.append(NewPerson(row.email, name, row.groups or ()))
            marks += len(words_of(name, row.email)) + len(row.groups or ())
        elif (edit := _edit(before, row)) is not None:
            updated.append(edit)
            marks += _marks(edit, words_of)
        if marks > MAX_MARKS:
            return BadFile((LineProblem(row.line, None, TOO_MANY_MARKS),), 1)
    unchanged = len(rows) - len(created) - len(updated)
    return ImportPlan(tuple(created), tuple(updated), unchanged)


def _edit(before: User, row: Row) -> Edit | None:
    name = before.name if row.name is None else row.name
    groups = before.groups if row.groups is None else row.groups
    return None if (name, groups) == (before.name, before.groups) else Edit(before, name, groups)


def _marks(edit: Edit, words_of: WordsOf) -> int:
    """How many come or go."""
    before = edit.before
    turned = len(set(before.groups) ^ set(edit.groups))
    if edit.name != before.name:
        here, there = (words_of(name, before.email) for name in (before.name, edit.name))
        turned += len(set(here) ^ set(there))
    return turned
