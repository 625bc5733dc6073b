"""Small values that slots, bookings and campaigns share.

The types of the output are never created: their fields are the attributes of the domain's values.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.campaigns import terms
from slotlock.domain.shared import validation
from slotlock.domain.shared.problems import Problem
from slotlock.graphql.core.enums import ProblemCode


@strawberry.type(description="One time at which the users of a slot meet.")
class Meeting:
    start: datetime = field(name="startTime", description="When the meeting starts.")
    end: datetime = field(name="endTime", description="When the meeting ends.")


@strawberry.type(description="The number of places that one group may have in a slot.")
class GroupLimit:
    group: str = field(
        description="The name of the group. A trailing star matches every group with that prefix."
    )
    limit: int = field(description="How many places the group may have in the slot.")


@strawberry.type(description="A value in the sentence of a problem.")
class ProblemValue:
    name: str = field(
        description="What the value is, such as `maximum`: the description of the code names it in "
        "braces. `about` is the part of the field that has the problem."
    )
    value: str = field(description="The value: a number, a name, or a time in its own zone.")

    @classmethod
    def all_of(cls, problem: Problem) -> list[Self]:
        """Return the values of a problem."""
        about = {"about": problem.about} if problem.about else {}
        values = {**problem.values, **about}
        return [cls(name=name, value=str(value)) for name, value in values.items()]


@strawberry.type(description="The problem with one field of an input.")
class FieldProblem:
    field: str = strawberry.field(description="The name of the field.")
    message: str = strawberry.field(description="The problem as a sentence in English.")
    code: Enum = strawberry.field(
        description="The problem, for programs and other languages.", graphql_type=ProblemCode
    )
    values: list[ProblemValue] = strawberry.field(
        description="The values that the message contains."
    )

    @classmethod
    def from_domain(cls, problem: validation.FieldProblem) -> Self:
        """Convert a problem of the domain."""
        message = problem.message
        return cls(
            field=problem.field,
            message=message,
            code=message.code,
            values=ProblemValue.all_of(message),
        )


@strawberry.input(description="The number of places that one group may have in a slot.")
class GroupLimitInput:
    group: str = field(
        description="The name of the group. A trailing star matches every group with that prefix: "
        "`class:*` with a limit of 5 allows 5 places for each class."
    )
    limit: int = field(description="How many places the group may have in the slot, at least 1.")


def similar_groups_of(named: str) -> str:
    """Return the description of a field for groups that others only resemble."""
    return (
        f"Groups that {named}, each with those of users and campaigns that resemble it. They "
        "differ only in capitals, accents, leading zeros, blanks or kinds of dashes, and are other "
        "groups. Only organizers see them; null for others."
    )


def to_domain_group_limits(limits: Sequence[GroupLimitInput]) -> tuple[terms.GroupLimit, ...]:
    """Convert the limits of an input to the domain's."""
    return tuple(terms.GroupLimit(limit.group, limit.limit) for limit in limits)
