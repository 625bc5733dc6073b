"""Entries of the audit log, as organizers see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.audit import log
from slotlock.domain.booking.booking import BookingRef
from slotlock.domain.users.user import UserId
from slotlock.graphql.campaigns.types import Campaign, load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import Connection
from slotlock.graphql.core.enums import AuditAction, BookingLimit, BookingStatus
from slotlock.graphql.slots.types import Booking, Slot, load_booking, load_slot
from slotlock.graphql.users.types import User, load_referenced_user


@strawberry.type(description="The change of one field in an entry of the audit log.")
class AuditEdit:
    field_: str = field(
        name="field", description="The name of the field, as in the input that changes it."
    )
    before: str | None = field(description="The previous value as text; null for no value.")
    after: str | None = field(description="The new value as text; null for no value.")
    user_id: strawberry.Private[UserId | None]

    @field(
        description="The user whose field changed, in an entry about several users; null otherwise."
    )
    async def user(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.user_id) if self.user_id else None

    @classmethod
    def from_domain(cls, edit: log.FieldEdit) -> Self:
        """Show the change of a field."""
        return cls(field_=edit.field, before=edit.before, after=edit.after, user_id=edit.user_id)


@strawberry.type(description="An entry of the audit log.")
class AuditEntry:
    at: datetime = field(description="When the action happened.")
    action: AuditAction = field(description="What happened.")
    booking_id: strawberry.ID | None = field(
        description="The id of the booking; null for an action without a booking."
    )
    before: BookingStatus | None = field(
        description="The status of the booking before the action; null for a new booking, and for "
        "a status of a newer version."
    )
    after: BookingStatus | None = field(
        description="The status of the booking after the action; null without a booking, and for a "
        "status of a newer version."
    )
    held_until: datetime | None = field(
        description="When the hold expires after the action; null for a booking that is no hold."
    )
    overridden_limits: list[BookingLimit] = field(
        description="The limits that an organizer overrode with the action."
    )
    resource_name: str | None = field(
        description="The name of the resource that was created, changed or deleted; null for other "
        "actions."
    )
    edits: list[AuditEdit] = field(description="The fields that an organizer changed.")
    entry: strawberry.Private[log.AuditEntry]

    @field(
        description="The user who carried out the action; null for the waiting list, the clock and "
        "the command line."
    )
    async def by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.entry.by) if self.entry.by else None

    @field(
        description="The user whom the action concerns, or whose booking or waiting list entry it "
        "concerns; null for an entry about several users."
    )
    async def user(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.entry.user_id) if self.entry.user_id else None

    @field(description="The campaign that was changed; null for actions on slots and users.")
    async def campaign(self, info: Info) -> Campaign | None:
        campaign_id = self.entry.campaign_id if self.entry.slot_id is None else None
        return await load_campaign(info, campaign_id) if campaign_id else None

    @field(description="The slot that was changed or whose bookings or waiting list changed.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.entry.slot_id) if self.entry.slot_id else None

    @field(
        description="The booking as it is now, active or ended; null for an action without a "
        "booking."
    )
    async def booking(self, info: Info) -> Booking | None:
        slot_id, booking_id = self.entry.slot_id, self.entry.booking_id
        if not (slot_id and booking_id):
            return None
        return await load_booking(info, BookingRef(slot_id, booking_id))

    @classmethod
    def from_domain(cls, entry: log.AuditEntry) -> Self:
        """Show an entry of the audit log."""
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
            resource_name=entry.resource,
            edits=[AuditEdit.from_domain(edit) for edit in entry.edits],
            entry=entry,
        )


AuditConnection = Connection[AuditEntry]
