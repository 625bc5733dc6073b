"""What an import of people comes to: who is new, who changes, and who is as the file says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slotlock.domain.people import MAX_NAME, User
from slotlock.domain.people_import import Row


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


ImportOutcome = Imported | ImportBusy


def plan_import(rows: Sequence[Row], known: Mapping[str, User]) -> ImportPlan:
    """The plan for these rows, when those of their addresses that have an account are `known`."""
    created, updated = [], []
    for row in rows:
        before = known.get(row.email)
        if before is None:
            name = row.name or row.email.partition("@")[0][:MAX_NAME]
            created.append(NewPerson(row.email, name, row.groups or ()))
            continue
        name = before.name if row.name is None else row.name
        groups = before.groups if row.groups is None else row.groups
        if (name, groups) != (before.name, before.groups):
            updated.append(Edit(before, name, groups))
    unchanged = len(rows) - len(created) - len(updated)
    return ImportPlan(tuple(created), tuple(updated), unchanged)
