"""Users without a booking in a campaign, as organizers see them."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.booking import booking
from slotlock.domain.reports import campaign_reports
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import Connection
from slotlock.graphql.core.cursors import encode_cursor
from slotlock.graphql.slots.selection import slot_selection
from slotlock.graphql.slots.types import Slot, WaitlistEntry
from slotlock.graphql.users.types import User
from slotlock.services.slots import queries


@strawberry.type(description="A user without a booking in a campaign.")
class UnplacedUser:
    user: User = field(description="The user who has no booking.")
    waitlist_entries: strawberry.Private[tuple[booking.WaitlistEntry, ...]]

    @field(description="The user's waiting list entries in the campaign, by start of the slot.")
    async def waiting(self, info: Info) -> list[WaitlistEntry]:
        viewer = info.context.viewer
        slot_ids = [entry.slot_id for entry in self.waitlist_entries]
        found = await queries.find_slots(
            info.context.services, slot_ids, viewer, slot_selection(info)
        )
        return [
            WaitlistEntry.from_domain(entry, Slot.from_domain(found[entry.slot_id], viewer))
            for entry in self.waitlist_entries
            if entry.slot_id in found
        ]

    @classmethod
    def from_domain(cls, unplaced: campaign_reports.UnplacedUser, viewer: Caller) -> Self:
        """Show a user and where they wait."""
        return cls(
            user=User.from_domain(unplaced.user, viewer), waitlist_entries=unplaced.waitlist_entries
        )


UNPLACED_CURSOR = "unplaced"
UnplacedConnection = Connection[UnplacedUser]


def unplaced_connection(
    page: campaign_reports.UnplacedUserPage, viewer: Caller, after: str | None
) -> UnplacedConnection:
    """Build a page that ends at the last user who was checked, even if they have a booking."""
    items = [
        (
            encode_cursor(UNPLACED_CURSOR, unplaced.user.email),
            UnplacedUser.from_domain(unplaced, viewer),
        )
        for unplaced in page.items
    ]
    end = page.searched_until
    return UnplacedConnection.from_items(
        items,
        has_more=page.has_more,
        after=after,
        end_cursor=encode_cursor(UNPLACED_CURSOR, end) if end else None,
    )
