"""Groups: the tags that people carry, such as a grade and a class, and what asks for them."""

from collections.abc import Iterable

from slotlock.domain.shared.text import normalize_name, validate_line

MAX_GROUPS = 20
MAX_GROUP_LENGTH = 50
# What separates groups in a file cannot be in one, and the star asks for many.
_RESERVED = ",;*"


def clean_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """The groups in the one way they are kept: trimmed, in Unicode NFC, each once, in order."""
    return tuple(sorted(set(map(normalize_name, groups)) - {""}))


def validate_groups(groups: tuple[str, ...]) -> str | None:
    """What is wrong with these groups of a person, or None."""
    if len(groups) > MAX_GROUPS:
        return f"At most {MAX_GROUPS} groups."
    return next((found for found in map(validate_group, groups) if found), None)


def validate_group(group: str) -> str | None:
    """What is wrong with one group, or None."""
    if not group.strip():
        return "A group needs a name."
    if any(character in _RESERVED for character in group):
        return f"A group's name has none of {_RESERVED}"
    return validate_line(group, MAX_GROUP_LENGTH)
