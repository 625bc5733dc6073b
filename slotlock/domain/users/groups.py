"""Groups: tags of users, such as a grade or a class."""

from collections.abc import Iterable

from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import normalize_line, strip_blanks, validate_line

MAX_GROUPS = 20
MAX_GROUP_LENGTH = 50
# Comma and semicolon separate groups in files; the star stands for any suffix in group limits.
_RESERVED = ",;*"


def clean_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """Return the groups normalized, sorted, and without blanks and duplicates."""
    return tuple(sorted(set(map(normalize_line, groups)) - {""}))


def validate_groups(groups: tuple[str, ...]) -> Problem | None:
    """Return the problem with a user's groups, or None."""
    if len(groups) > MAX_GROUPS:
        return ProblemCode.TOO_MANY_GROUPS.problem(maximum=MAX_GROUPS)
    return next((problem for problem in map(validate_group, groups) if problem), None)


def validate_group(group: str) -> Problem | None:
    """Return the problem with the name of one group, or None."""
    if not strip_blanks(group):
        return ProblemCode.GROUP_BLANK.problem()
    if any(character in _RESERVED for character in group):
        return ProblemCode.GROUP_SEPARATOR.problem()
    return validate_line(group, MAX_GROUP_LENGTH)
