"""The log of what happened, as organisers see it."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.audit import log
from slotlock.domain.audit.log import AuditAction
from slotlock.domain.booking.history import BookingLimit, BookingStatus
from slotlock.domain.users.user import UserId
from slotlock.graphql.campaigns.types import Campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import Connection
from slotlock.graphql.slots.types import Slot, load_campaign
from slotlock.graphql.users.types import User, load_user


@strawberry.type(description="A field that an organiser changed.")
class AuditEdit:
    field_: str = field(name="field", description="Its name, as in the input that changes it.")
    before: str | None = field(description="Its value before as text; null for none.")
    after: str | None = field(description="Its value after as text; null for none.")
    user_id: strawberry.Private[UserId | None]

    @field(description="Of many people changed at once, whose field it is.")
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.user_id) if self.user_id else None

    @classmethod
    def from_domain(cls, edit: log.FieldEdit) -> Self:
        return cls(field_=edit.field, before=edit.before, after=edit.after, user_id=edit.user_id)


@strawberry.type(description="One thing that happened.")
class AuditEntry:
    at: datetime = field(description="When.")
    action: AuditAction = field(description="What happened.")
    booking_id: strawberry.ID | None = field(
        description="The booking it happened to, for `node`; null for a turn in a waiting list."
    )
    before: BookingStatus | None = field(
        description="The booking's status before; null when it was made."
    )
    after: BookingStatus | None = field(description="The booking's status after.")
    held_until: datetime | None = field(description="Of a hold, when it runs out after this.")
    overridden_limits: list[BookingLimit] = field(
        description="Limits that an organizer overrode with it."
    )
    edits: list[AuditEdit] = field(description="Of an organiser's act, the fields that it changed.")
    entry: strawberry.Private[log.AuditEntry]

    @field(description="Who did it; null for the waiting list, the clock and the command line.")
    async def by(self, info: Info) -> User | None:
        return await load_user(info, self.entry.by) if self.entry.by else None

    @field(
        description="Whose booking or turn it is, or to whom it was done; null if to many at once."
    )
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.entry.user_id) if self.entry.user_id else None

    @field(description="The campaign that was changed.")
    async def campaign(self, info: Info) -> Campaign | None:
        changed = self.entry.campaign_id if self.entry.slot_id is None else None
        return await load_campaign(info, changed) if changed else None

    @field(description="The slot it is in, or that was changed.")
    async def slot(self, info: Info) -> Slot | None:
        slot_id = self.entry.slot_id
        found = await info.context.slots.load(slot_id) if slot_id else None
        return Slot.from_domain(found, info.context.viewer) if found else None

    @classmethod
    def from_domain(cls, entry: log.AuditEntry) -> Self:
        booking_id = None
        if entry.slot_id and entry.booking_id:
            booking_id = ids.booking_global_id(entry.slot_id, entry.booking_id)
        return cls(
            at=entry.position.at,
            action=entry.action,
            booking_id=booking_id,
            before=entry.before,
            after=entry.after,
            held_until=entry.held_until,
            overridden_limits=list(entry.overridden_limits),
            edits=[AuditEdit.from_domain(edit) for edit in entry.edits],
            entry=entry,
        )


AuditConnection = Connection[AuditEntry]
