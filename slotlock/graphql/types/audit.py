"""The log of what happened, as organisers see it."""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Self

import orjson
import strawberry
from strawberry import field

from slotlock.domain import audit as domain
from slotlock.domain.audit import AuditPosition, Happening
from slotlock.domain.record import BookingStatus, Limit
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.connections import EPOCH, Connection
from slotlock.graphql.types.people import User, load_user
from slotlock.graphql.types.slots import Slot

MOST_ENTRIES = 1_000_000


@strawberry.type(description="One thing that happened.")
class AuditEntry:
    at: datetime = field(description="When.")
    what: Happening = field(description="What.")
    booking_id: strawberry.ID | None = field(
        description="The booking it happened to, for `node`; null for a turn in a waiting list."
    )
    before: BookingStatus | None = field(
        description="The booking's status before; null when it was made."
    )
    after: BookingStatus | None = field(description="The booking's status after.")
    held_until: datetime | None = field(description="Of a hold, when it runs out after this.")
    overrode: list[Limit] = field(description="Limits that an organiser overrode with it.")
    entry: strawberry.Private[domain.AuditEntry]

    @field(description="Who did it; null for the waiting list and the clock.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.entry.by) if self.entry.by else None

    @field(description="Whose booking or turn it is.")
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.entry.user_id) if self.entry.user_id else None

    @field(description="The slot it is in.")
    async def slot(self, info: Info) -> Slot | None:
        slot_id = self.entry.slot_id
        found = await info.context.slots.load(slot_id) if slot_id else None
        return Slot.of(found, info.context.reader) if found else None

    @classmethod
    def of(cls, entry: domain.AuditEntry) -> Self:
        booking_id = None
        if entry.slot_id and entry.booking_id:
            booking_id = ids.booking_gid(entry.slot_id, entry.booking_id)
        return cls(
            at=entry.position.at,
            what=entry.what,
            booking_id=booking_id,
            before=entry.before,
            after=entry.after,
            held_until=entry.held_until,
            overrode=list(entry.overrode),
            entry=entry,
        )


AuditConnection = Connection[AuditEntry]


def audit_cursor(entry: domain.AuditEntry) -> str:
    """The cursor that stands for an entry."""
    place = entry.position
    milliseconds = (place.at - EPOCH) // timedelta(milliseconds=1)
    return urlsafe_b64encode(orjson.dumps([milliseconds, place.id, place.number])).decode()


def audit_position(cursor: str | None) -> AuditPosition | None:
    """The position that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    try:
        milliseconds, id_, number = orjson.loads(urlsafe_b64decode(cursor.encode("ascii")))
        known = re.fullmatch("[0-9a-f]{24}", id_, re.ASCII)
        if known and isinstance(number, int) and 0 <= number < MOST_ENTRIES:
            return AuditPosition(EPOCH + timedelta(milliseconds=milliseconds), id_, number)
    except (ValueError, TypeError, OverflowError, binascii.Error):
        pass
    raise RefusedError(Code.BAD_USER_INPUT, "This cursor is not one of ours.")
