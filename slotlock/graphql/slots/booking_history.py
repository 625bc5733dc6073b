"""The history of a booking, as its user and organizers see it."""

from datetime import datetime
from enum import Enum
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking.booking import HistoryChange
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import BookingAction, BookingLimit, BookingStatus
from slotlock.graphql.core.refusals import USE_OVERRIDDEN_REFUSALS, RefusalCode, refusal_codes
from slotlock.graphql.users.user_queries import User, load_referenced_user


@strawberry.type(description="One entry in the history of a booking.")
class BookingChange:
    at: datetime = field(description="When the change happened.")
    action: BookingAction = field(description="The action on the booking.")
    before: BookingStatus | None = field(
        description="The status before the change; null for the first entry."
    )
    after: BookingStatus = field(description="The status after the change.")
    held_until: datetime | None = field(
        description="When the hold expires after this change; null for a booking that is no hold."
    )
    overridden_limits: list[BookingLimit] = field(
        description="The limits that an organizer overrode with this change.",
        deprecation_reason=USE_OVERRIDDEN_REFUSALS,
    )
    overridden_refusals: list[Enum] = field(
        description="The codes of the refusals that an organizer overrode with this change.",
        graphql_type=list[RefusalCode],
    )
    meeting_start_time: datetime | None = field(
        description="The start of the meeting whose attendance changed, in a slot with several; "
        "null for other actions, and for the attendance of all meetings."
    )
    by_id: strawberry.Private[UserId | None]

    @field(
        description="The user who made the change; null for the waiting list and for expired holds."
    )
    async def by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.by_id) if self.by_id else None

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
            overridden_refusals=refusal_codes(entry.overridden_limits),
            meeting_start_time=entry.meeting_start,
            by_id=entry.by,
        )
