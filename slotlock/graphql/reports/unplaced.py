"""Who did not get a place, as organisers see them."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking import booking
from slotlock.domain.reports import campaign_reports
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import Connection
from slotlock.graphql.core.cursors import encode_cursor
from slotlock.graphql.slots.types import Slot, WaitlistEntry
from slotlock.graphql.users.types import User


@strawberry.type(description="Somebody who has no place in a campaign.")
class UnplacedUser:
    user: User = field(description="Who.")
    waitlist_entries: strawberry.Private[tuple[booking.WaitlistEntry, ...]]

    @field(description="Where they wait, by the start of the slots; empty if nowhere.")
    async def waiting(self, info: Info) -> list[WaitlistEntry]:
        found = await info.context.slots.load_many([turn.slot_id for turn in self.waitlist_entries])
        return [
            WaitlistEntry.from_domain(turn, Slot.from_domain(slot, info.context.viewer))
            for turn, slot in zip(self.waitlist_entries, found, strict=True)
            if slot is not None
        ]

    @classmethod
    def from_domain(cls, unplaced: campaign_reports.UnplacedUser, viewer: Caller) -> Self:
        return cls(
            user=User.from_domain(unplaced.user, viewer), waitlist_entries=unplaced.waitlist_entries
        )


UNPLACED_CURSOR = "unplaced"
UnplacedConnection = Connection[UnplacedUser]


def unplaced_connection(
    page: campaign_reports.UnplacedUserPage, viewer: Caller, after: str | None
) -> UnplacedConnection:
    """A page, which ends at the last person who was looked at, though they may have a place."""
    items = [
        (encode_cursor(UNPLACED_CURSOR, each.user.email), UnplacedUser.from_domain(each, viewer))
        for each in page.items
    ]
    connection = UnplacedConnection.from_items(items, has_more=page.has_more, after=after)
    connection.page_info.end_cursor = (
        encode_cursor(UNPLACED_CURSOR, page.searched_until) if page.searched_until else None
    )
    return connection
