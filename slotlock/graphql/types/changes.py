"""What happened to a booking, as clients see it."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.people import UserId
from slotlock.domain.record import BookingAction, BookingLimit, BookingStatus, HistoryChange
from slotlock.graphql.context import Info
from slotlock.graphql.types.people import User, load_user


@strawberry.type(description="One thing that happened to a booking.")
class BookingChange:
    at: datetime = field(description="When.")
    action: BookingAction = field(description="What was done to it.")
    before: BookingStatus | None = field(description="The status before; null when it was made.")
    after: BookingStatus = field(description="The status after.")
    held_until: datetime | None = field(description="Of a hold, when it runs out after this.")
    overridden_limits: list[BookingLimit] = field(
        description="Limits that an organizer overrode with it."
    )
    by_id: strawberry.Private[UserId | None]

    @field(description="Who did it; null for the waiting list and the clock.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.by_id) if self.by_id else None

    @classmethod
    def from_domain(cls, change: HistoryChange) -> Self:
        entry = change.entry
        return cls(
            at=entry.at,
            action=entry.action,
            before=change.before.status if change.before else None,
            after=entry.status,
            held_until=entry.held_until,
            overridden_limits=list(entry.overridden_limits),
            by_id=entry.by,
        )
