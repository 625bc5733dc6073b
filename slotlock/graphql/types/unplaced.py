"""Who did not get a place, as organisers see them."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain import unplaced as domain
from slotlock.domain.bookings import Waiting
from slotlock.domain.people import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.cursors import sealed
from slotlock.graphql.types.connections import Connection
from slotlock.graphql.types.people import User
from slotlock.graphql.types.slots import Slot, WaitlistEntry


@strawberry.type(description="Somebody who has no place in a campaign.")
class UnplacedPerson:
    user: User = field(description="Who.")
    turns: strawberry.Private[tuple[Waiting, ...]]

    @field(description="Where they wait, by the start of the slots; empty if nowhere.")
    async def waiting(self, info: Info) -> list[WaitlistEntry]:
        found = await info.context.slots.load_many([turn.slot_id for turn in self.turns])
        return [
            WaitlistEntry.of(turn, Slot.of(slot, info.context.reader))
            for turn, slot in zip(self.turns, found, strict=True)
            if slot is not None
        ]

    @classmethod
    def of(cls, each: domain.Unplaced, organiser: Caller) -> Self:
        return cls(user=User.of(each.user, organiser), turns=each.waiting)


UNPLACED = "unplaced"
UnplacedConnection = Connection[UnplacedPerson]


def unplaced_page(
    page: domain.UnplacedPage, organiser: Caller, after: str | None
) -> UnplacedConnection:
    """A page, which ends at the last person who was looked at, though they may have a place."""
    items = [
        (sealed(UNPLACED, each.user.email), UnplacedPerson.of(each, organiser))
        for each in page.items
    ]
    connection = UnplacedConnection.of(items, more=page.more, after=after)
    connection.page_info.end_cursor = sealed(UNPLACED, page.end) if page.end else None
    return connection
