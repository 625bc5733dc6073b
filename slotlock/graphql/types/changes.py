"""What happened to a booking, as clients see it."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Change, Deed, Limit
from slotlock.graphql.context import Info
from slotlock.graphql.types.people import User, load_user


@strawberry.type(description="One thing that happened to a booking.")
class BookingChange:
    at: datetime = field(description="When.")
    what: Deed = field(description="What was done to it.")
    before: BookingStatus | None = field(description="The status before; null when it was made.")
    after: BookingStatus = field(description="The status after.")
    held_until: datetime | None = field(description="Of a hold, when it runs out after this.")
    overrode: list[Limit] = field(description="Limits that an organiser overrode with it.")
    by_id: strawberry.Private[UserId | None]

    @field(description="Who did it; null for the waiting list and the clock.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.by_id) if self.by_id else None

    @classmethod
    def of(cls, change: Change) -> Self:
        entry = change.entry
        return cls(
            at=entry.at,
            what=entry.deed,
            before=change.before.after if change.before else None,
            after=entry.after,
            held_until=entry.held_until,
            overrode=list(entry.overrode),
            by_id=entry.by,
        )
