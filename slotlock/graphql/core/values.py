"""Small values that slots, bookings and campaigns share."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.campaigns import terms
from slotlock.domain.schedule import meetings


@strawberry.type(description="One time at which the users of a slot meet.")
class Meeting:
    start_time: datetime = field(description="When the meeting starts.")
    end_time: datetime = field(description="When the meeting ends.")

    @classmethod
    def from_domain(cls, meeting: meetings.Meeting) -> Self:
        """Show a meeting to a client."""
        return cls(start_time=meeting.start, end_time=meeting.end)


@strawberry.type(description="The number of places that one group may have in a slot.")
class GroupLimit:
    group: str = field(
        description="The name of the group. A trailing star matches every group with that prefix."
    )
    limit: int = field(description="How many places the group may have in the slot.")

    @classmethod
    def from_domain(cls, limit: terms.GroupLimit) -> Self:
        """Show the limit of a group to a client."""
        return cls(group=limit.group, limit=limit.limit)


@strawberry.input(description="The number of places that one group may have in a slot.")
class GroupLimitInput:
    group: str = field(
        description="The name of the group. A trailing star matches every group with that prefix: "
        "`class:*` with a limit of 5 allows 5 places for each class."
    )
    limit: int = field(description="How many places the group may have in the slot, at least 1.")


def to_domain_group_limits(limits: Sequence[GroupLimitInput]) -> tuple[terms.GroupLimit, ...]:
    """Convert the limits of an input to the domain's."""
    return tuple(terms.GroupLimit(limit.group, limit.limit) for limit in limits)
