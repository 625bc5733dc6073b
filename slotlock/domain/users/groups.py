"""Groups: tags of users, such as a grade or a class."""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from slotlock.domain.shared.folding import fold
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.text import normalize_line, strip_blanks, validate_line

MAX_GROUPS = 20
MAX_GROUP_LENGTH = 50
# As many as may take part in a campaign.
MAX_LISTED_GROUPS = 200
# Comma and semicolon separate groups in files; the star stands for any suffix in group limits.
_RESERVED = ",;*"
# A list of 100 slots compares the groups of each with all.
CACHED_GROUPS = 1_024

_DASHES = re.compile("[\u2010-\u2015\u2212]")
# Leading zeros, and blanks that do not separate two numbers.
_LEFT_OUT = re.compile(r"(?<!\d)0+(?=\d)|(?<!\d) | (?!\d)")


def similar_groups(groups: Iterable[str], known: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return those groups that others only resemble, with these: `06C`, `6C` and `6 c`.

    A campaign for one of them is closed to the members of the others. A limit for `class:*`
    resembles `Class:5a`, to which it does not apply.
    """
    wanted, by_form = set(groups), defaultdict[str, set[str]](set)
    names = wanted.union(known)
    for name in names:
        by_form[_form(name)].add(name)
    alike = list(by_form.values())
    for limit in names:
        if limit.endswith("*"):
            prefix = limit[:-1]
            others = (name for name in names if not name.startswith(prefix))
            alike.append({limit}.union(n for n in others if _form(n).startswith(_form(prefix))))
    similar = {tuple(sorted(each)) for each in alike if len(each) > 1 and each & wanted}
    return tuple(sorted(similar))


@lru_cache(maxsize=CACHED_GROUPS)
def _form(group: str) -> str:
    return _LEFT_OUT.sub("", _DASHES.sub("-", fold(group)))


def class_of(groups: Iterable[str]) -> str:
    """Return the group by which lists are sorted: the first that begins with a digit, or is first.

    A school calls its classes 5a, and other groups by words.
    """
    in_order = sorted(filter(None, groups), key=lambda group: not group[0].isdigit())
    return in_order[0] if in_order else ""


def in_natural_order(group: str) -> tuple[tuple[str, int], ...]:
    """Return a key by which 5a is before 10a."""
    parts = re.findall(r"(\D*)(\d{0,18})", sort_key(group))
    return tuple((text, int(digits or 0)) for text, digits in parts)


def clean_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """Return the groups normalized, sorted, and without blanks and duplicates."""
    return tuple(sorted(set(map(normalize_line, groups)) - {""}))


def parse_group_list(text: str) -> str | Problem:
    """Return the groups in a text with commas between them, in a fixed form: `5a, 5b`."""
    groups = clean_groups(text.split(","))
    if not groups:
        return ProblemCode.GROUP_BLANK.problem()
    if len(groups) > MAX_LISTED_GROUPS:
        return ProblemCode.TOO_MANY_GROUPS.problem(maximum=MAX_LISTED_GROUPS)
    return next(filter(None, map(validate_group, groups)), ", ".join(groups))


def validate_groups(groups: tuple[str, ...]) -> Problem | None:
    """Return the problem with a user's groups, or None."""
    if len(groups) > MAX_GROUPS:
        return ProblemCode.TOO_MANY_GROUPS.problem(maximum=MAX_GROUPS)
    return next((problem for problem in map(validate_group, groups) if problem), None)


def validate_pattern(pattern: str) -> Problem | None:
    """Return the problem with the name of a group, or with the beginning of names as `class:*`."""
    return None if pattern == "*" else validate_group(pattern.removesuffix("*"))


def validate_group(group: str) -> Problem | None:
    """Return the problem with the name of one group, or None."""
    if not strip_blanks(group):
        return ProblemCode.GROUP_BLANK.problem()
    if any(character in _RESERVED for character in group):
        return ProblemCode.GROUP_SEPARATOR.problem()
    return validate_line(group, MAX_GROUP_LENGTH)
