"""Plan which resources the users of a file lead."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from slotlock.domain.resources.resource import (
    Resource,
    ResourceKind,
    name_key,
    unknown_resource,
    validate_kind,
)
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.tables.file_problems import ProblemCollector
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.columns import LEADS
from slotlock.domain.user_files.families import is_changed
from slotlock.domain.user_files.problems import ImportProblem
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.user import User, UserId

# The id of any leader.
SOMEBODY = UserId("")
_SEPARATORS = re.compile("[,\uff0c]")


@value_object
class LeaderChange:
    """A resource, and the login name of its new leader; None if it has none any more."""

    resource: Resource
    login_name: str | None


def plan_leaders(
    rows: Sequence[UserRow],
    users: Mapping[str, User],
    resources: Sequence[Resource],
    choices: Choices,
    problems: ProblemCollector,
) -> tuple[LeaderChange, ...]:
    """Plan the leaders of resources: a user leads those in the cell, and no others any more."""
    by_key = {name_key(each.name): each for each in resources}
    led_by = defaultdict[UserId, list[str]](list)
    for each in resources:
        if each.leader is not None:
            led_by[each.leader].append(each.name)
    leaders, lines = dict[str, str | None](), dict[str, int]()
    for row in rows:
        user = users.get(row.login_name)
        if row.leads is None or not is_changed(row, user, choices):
            continue
        for led in led_by[user.id] if user else ():
            leaders.setdefault(led, None)
        for name in _split(row.leads, by_key):
            resource = by_key.get(name_key(name))
            if problem := _problem_of(name, resource, resources, user):
                problems.add(row.line, LEADS, problem, problem.code.name, **problem.values)
            elif resource and lines.setdefault(resource.name, row.line) != row.line:
                first_line = lines[resource.name]
                message = f"Line {first_line} leads the same resource."
                problems.add(row.line, LEADS, message, ImportProblem.SAME_RESOURCE, line=first_line)
            elif resource:
                leaders[resource.name] = row.login_name
    return tuple(
        LeaderChange(each, leaders[each.name])
        for each in resources
        if each.name in leaders and not _is_led_by(each, users.get(leaders[each.name] or ""))
    )


def _problem_of(
    name: str, resource: Resource | None, resources: Sequence[Resource], user: User | None
) -> Problem | None:
    """Return why a user cannot lead what has this name; None if they can."""
    if resource is None:
        known = [each.name for each in resources if each.kind is ResourceKind.STAFF]
        return unknown_resource(LEADS, name, known).problems[0].message
    if user and user.banned and not _is_led_by(resource, user):
        return ProblemCode.USER_IS_BANNED.problem()
    return validate_kind(replace(resource, leader=SOMEBODY))


def _split(names: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """Yield the names, of which one that is unknown may be several known ones with commas."""
    for name in names:
        parts = [normalize_line(each) for each in _SEPARATORS.split(name)]
        is_list = name_key(name) not in known and all(name_key(each) in known for each in parts)
        yield from parts if is_list else [name]


def _is_led_by(resource: Resource, user: User | None) -> bool:
    return user is not None and resource.leader == user.id
