"""The audit log, as organizers see it."""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Annotated, TypeVar

import strawberry
from strawberry import Parent, argument, field

from slotlock.domain.audit import audit_log
from slotlock.domain.audit.audit_log import AuditFilter
from slotlock.domain.booking.booking import BookingAction, BookingRef
from slotlock.graphql.campaigns.campaign_queries import Campaign, load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_AUDIT_ENTRY, ListCursors
from slotlock.graphql.core.enums import AuditAction, BookingLimit, BookingStatus
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import USE_OVERRIDDEN_REFUSALS, RefusalCode, refusal_codes
from slotlock.graphql.slots.slot_types import (
    Booking,
    Slot,
    load_booking,
    load_slot,
)
from slotlock.graphql.users.user_queries import User, load_referenced_user


@strawberry.type(description="The change of one field in an entry of the audit log.")
class AuditEdit:
    field: str = strawberry.field(
        description="The name of the field, as in the input that changes it."
    )
    before: str | None = strawberry.field(
        description="The previous value as text; null for no value."
    )
    after: str | None = strawberry.field(description="The new value as text; null for no value.")

    @strawberry.field(
        description="The user whose field changed, in an entry about several users; null otherwise."
    )
    async def user(edit: Parent[audit_log.FieldEdit], info: Info) -> User | None:
        return await load_referenced_user(info, edit.user_id) if edit.user_id else None


def _booking_global_id(entry: Parent[audit_log.AuditEntry]) -> strawberry.ID | None:
    if not (entry.slot_id and entry.booking_id):
        return None
    return ids.booking_global_id(entry.slot_id, entry.booking_id)


@strawberry.type(description="An entry of the audit log.")
class AuditEntry:
    at: datetime = field(description="When the action happened.")
    action: audit_log.AuditAction = field(description="What happened.", graphql_type=AuditAction)

    booking_id: strawberry.ID | None = field(
        resolver=_booking_global_id,
        description="The id of the booking; null for an action without a booking.",
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
        description="The limits that an organizer overrode with the action.",
        deprecation_reason=USE_OVERRIDDEN_REFUSALS,
    )
    meeting_start: datetime | None = field(
        name="meetingStartTime",
        description="The start of the meeting whose attendance changed, in a slot with several; "
        "null for other actions, and for the attendance of all meetings.",
    )
    resource: str | None = field(
        name="resourceName",
        description="The name of the resource that was created, changed or deleted; null for other "
        "actions.",
    )
    holiday_list: str | None = field(
        name="holidayListName",
        description="The name of the list of holidays that was created, changed or deleted; null "
        "for other actions.",
    )
    webhook: str | None = field(
        name="webhookServer",
        description="The server of the webhook that was created, changed or deleted, such as "
        "`example.org`; null for other actions.",
    )
    edits: list[AuditEdit] = field(description="The fields that changed.")

    @field(
        description="The codes of the refusals that an organizer overrode with the action.",
        graphql_type=list[RefusalCode],
    )
    def overridden_refusals(entry: Parent[audit_log.AuditEntry]) -> list[Enum]:
        return refusal_codes(entry.overridden_limits)

    @field(
        description="The user who carried out the action; null for the waiting list, the clock and "
        "the command line."
    )
    async def by(entry: Parent[audit_log.AuditEntry], info: Info) -> User | None:
        return await load_referenced_user(info, entry.by) if entry.by else None

    @field(
        description="The user whom the action concerns, or whose booking or waiting list entry it "
        "concerns; null for an entry about several users."
    )
    async def user(entry: Parent[audit_log.AuditEntry], info: Info) -> User | None:
        return await load_referenced_user(info, entry.user_id) if entry.user_id else None

    @field(description="The campaign that was changed; null for actions on slots and users.")
    async def campaign(entry: Parent[audit_log.AuditEntry], info: Info) -> Campaign | None:
        campaign_id = entry.campaign_id if entry.slot_id is None else None
        return await load_campaign(info, campaign_id) if campaign_id else None

    @field(description="The slot that was changed or whose bookings or waiting list changed.")
    async def slot(entry: Parent[audit_log.AuditEntry], info: Info) -> Slot | None:
        return await load_slot(info, entry.slot_id) if entry.slot_id else None

    @field(
        description="The booking as it is now, active or ended; null for an action without a "
        "booking."
    )
    async def booking(entry: Parent[audit_log.AuditEntry], info: Info) -> Booking | None:
        slot_id, booking_id = entry.slot_id, entry.booking_id
        if not (slot_id and booking_id):
            return None
        return await load_booking(info, BookingRef(slot_id, booking_id))

    @field(
        description="The slot that the booking left for `slot`; null for other actions than MOVED, "
        "and in the entry of the booking that ended."
    )
    async def moved_from(entry: Parent[audit_log.AuditEntry], info: Info) -> Slot | None:
        return await _load_other_slot(entry, info) if entry.before is None else None

    @field(
        description="The slot to which the booking went from `slot`; null for other actions than "
        "MOVED, and in the entry of the new booking."
    )
    async def moved_to(entry: Parent[audit_log.AuditEntry], info: Info) -> Slot | None:
        return await _load_other_slot(entry, info) if entry.before is not None else None


async def _load_other_slot(entry: audit_log.AuditEntry, info: Info) -> Slot | None:
    """Load the slot from which, or to which, the booking of an entry moved."""
    slot_id, booking_id = entry.slot_id, entry.booking_id
    if entry.action is not BookingAction.MOVED or not (slot_id and booking_id):
        return None
    found = await info.context.loaders.bookings.load(BookingRef(slot_id, booking_id))
    moved = found and (found[0].moved_from if entry.before is None else found[0].moved_to)
    return await load_slot(info, moved.slot_id) if moved else None


AuditConnection = Connection[AuditEntry]


AUDIT_LOG = ListCursors("auditLog", BY_AUDIT_ENTRY, lambda entry: entry.position)
Id = TypeVar("Id")


@strawberry.input(
    description="The entries to find. A field that is left out matches every entry. At least one "
    "of `campaignId`, `slotId`, `userId` and `by` is required unless `actions` excludes everything "
    "that happens to bookings and on waiting lists."
)
class AuditLogFilter:
    campaign_id: strawberry.ID | None = field(
        default=None, description="Only entries about this campaign and its slots."
    )
    slot_id: strawberry.ID | None = field(default=None, description="Only entries about this slot.")
    user_id: strawberry.ID | None = field(
        default=None,
        description="Only entries about this user, or about their bookings and waiting list "
        "entries.",
    )
    by: strawberry.ID | None = field(
        default=None, description="Only actions that this user carried out."
    )
    by_nobody: bool = field(
        default=False,
        description="Only actions without a user: of the waiting list, the clock and the command "
        "line.",
    )
    for_others: bool = field(
        default=False,
        description="Only actions on bookings and waiting lists that somebody else than their user "
        "carried out.",
    )
    actions: list[Enum] | None = field(
        default=None,
        description="Only entries with one of these actions.",
        graphql_type=list[AuditAction] | None,
    )
    from_: datetime | None = field(
        default=None, name="from", description="Only entries of this time or later."
    )
    until: datetime | None = field(default=None, description="Only entries before this time.")

    def to_domain(self) -> AuditFilter:
        """Convert the filter to the domain's. Errors: BAD_USER_INPUT."""
        require_valid_period("from", self.from_, "until", self.until)
        actions = None if self.actions is None else frozenset(each.value for each in self.actions)
        audit_filter = AuditFilter(
            campaign_id=_require_valid_id(
                "campaignId", "campaign", self.campaign_id, ids.parse_campaign_id
            ),
            slot_id=_require_valid_id("slotId", "slot", self.slot_id, ids.parse_slot_id),
            user_id=_require_valid_id("userId", "user", self.user_id, ids.parse_user_id),
            by=_require_valid_id("by", "user", self.by, ids.parse_user_id),
            system_only=self.by_nobody,
            actions=actions,
            for_others=self.for_others,
            since=self.from_,
            before=self.until,
        )
        if not audit_filter.is_bounded:
            raise bad_input(
                "filter",
                "The filter needs a campaign, a slot, a user, or actions that are not about "
                "bookings and waiting lists.",
            )
        return audit_filter


def _require_valid_id(
    field_name: str, kind: str, global_id: str | None, parse: Callable[[str], Id | None]
) -> Id | None:
    if global_id is None:
        return None
    parsed_id = parse(global_id)
    if parsed_id is None:
        raise bad_input(field_name, f"`{field_name}` must be the id of a {kind}.")
    return parsed_id


AuditFilterArgument = Annotated[AuditLogFilter, argument(description="The entries to find.")]


@strawberry.type
class AuditQueries:
    @field(
        description="The audit log, newest entries first: everything that happened to bookings and "
        "on waiting lists, and all changes by organizers, admins and operators. Organizers only."
    )
    async def audit_log(
        self,
        info: Info,
        filter: AuditFilterArgument,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> AuditConnection:
        info.context.require_organizer()
        services, start = info.context.services, page_start(AUDIT_LOG, first, after)
        page = await services.audit_log.page(filter.to_domain(), *start, services.now())
        return AuditConnection(page, page.items, AUDIT_LOG, after)
