"""Edits of a slot by the words of its users: another teacher is no other place."""

from collections.abc import Iterable, Iterator, Mapping

from slotlock.domain.audit.audit_log import FieldEdit
from slotlock.domain.resources.resource import Resource, ResourceKind

# What users call the fields of edits; all others are the time.
_PARTS = {"location": "place", "resources": "place", "meetingUrl": "place", "staff": "staff"}


def parts_of(edits: Iterable[FieldEdit]) -> set[str]:
    """Return what edits change: "time", "place" or "staff"."""
    return {_PARTS.get(edit.field, "time") for edit in edits}


def names_of(edit: FieldEdit) -> tuple[list[str], list[str]]:
    """Return the names of the resources before and after an edit; none of another field."""
    if edit.field != "resources":
        return [], []
    before, after = (text.split(", ") if text else [] for text in (edit.before, edit.after))
    return before, after


def is_reordered(edit: FieldEdit) -> bool:
    """Return whether an edit names the same resources in another order."""
    before, after = names_of(edit)
    return bool(before) and {*before} == {*after}


def resource_names(edits: Iterable[FieldEdit]) -> list[str]:
    """Return the names of the resources that edits name."""
    return sorted({name for edit in edits for names in names_of(edit) for name in names})


def with_staff_apart(
    edits: Iterable[FieldEdit], resources: Mapping[str, Resource]
) -> Iterator[FieldEdit]:
    """Yield edits, and for that of the resources one of the staff and one of all others.

    `resources` are those of `resource_names`. One that was deleted since then counts as one of the
    staff if whatever changed with it is of the staff.
    """
    is_staff = {name: each.kind is ResourceKind.STAFF for name, each in resources.items()}
    for edit in edits:
        if edit.field != "resources":
            yield edit
            continue
        before, after = names_of(edit)
        of_deleted = {is_staff[name] for name in {*before} ^ {*after} if name in is_staff} == {True}
        for field, wanted in (("resources", False), ("staff", True)):
            old, new = (
                [name for name in names if is_staff.get(name, of_deleted) is wanted]
                for names in (before, after)
            )
            if {*old} != {*new}:
                yield FieldEdit(field, ", ".join(old) or None, ", ".join(new) or None)
