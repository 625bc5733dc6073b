"""Notes of what organisers do: who, when, what, and the fields that changed, before and after.

What happens to a booking is a part of the booking (see `record`); everything else that organisers
change leaves a note, which is written with the change or not at all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from slotlock.domain.audit.log import AuditAction, FieldEdit
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import User, UserId

# The fields as clients know them, and as the domain does.
SLOT_FIELDS = {
    "title": "title",
    "startTime": "start",
    "endTime": "end",
    "meetings": "meetings",
    "timeZone": "time_zone",
    "location": "location",
    "kind": "kind",
    "status": "status",
    "capacity": "capacity",
    "holdMinutes": "hold_minutes",
    "cancelCutoffMinutes": "cancel_cutoff_minutes",
    "waitlistCapacity": "waitlist_capacity",
    "waitlistOfferMinutes": "waitlist_offer_minutes",
    "choiceGroup": "choice_group",
    "groupLimits": "group_limits",
    "resource": "resource",
}
TERMS_FIELDS = {
    "published": "published",
    "opensAt": "opens_at",
    "closesAt": "closes_at",
    "eligibleGroups": "eligible_groups",
    "maxBookings": "max_bookings",
    "forbidOverlap": "forbid_overlap",
    "groupLimits": "group_limits",
    "cancelUntil": "cancel_until",
}
USER_FIELDS = {
    "email": "email",
    "name": "name",
    "role": "role",
    "groups": "groups",
    "banned": "banned",
    "banReason": "ban_reason",
}


@dataclass(frozen=True, slots=True)
class AuditNote:
    """One act. `by` is None for the command line; `user_ids` are those to whom it was done."""

    at: datetime
    by: UserId | None
    action: AuditAction
    edits: tuple[FieldEdit, ...]
    slot_id: SlotId | None = None
    campaign_id: CampaignId | None = None
    user_ids: tuple[UserId, ...] = ()


def note_slot_change(before: Slot | None, after: Slot, by: UserId) -> AuditNote | None:
    """What was done to a slot, or None if nothing of it changed but its bookings."""
    edits = tuple(_field_edits(SLOT_FIELDS, before, after))
    campaign_id = after.terms.campaign_id if after.terms else None
    note = AuditNote(
        after.changed_at, by, _slot_action(before, after), edits, after.id, campaign_id
    )
    return note if edits else None


def _slot_action(before: Slot | None, after: Slot) -> AuditAction:
    if before is None:
        return AuditAction.SLOT_CREATED
    if before.status is after.status:
        return AuditAction.SLOT_EDITED
    called_off = after.status is SlotStatus.CANCELLED
    return AuditAction.SLOT_CANCELLED if called_off else AuditAction.SLOT_PUBLISHED


def note_campaign_change(
    before: Campaign | None, after: Campaign, by: UserId | None, now: datetime
) -> AuditNote:
    """What was done to a campaign."""
    names = _field_edits({"name": "name"}, before, after)
    terms = _field_edits(TERMS_FIELDS, before and before.terms, after.terms)
    what = AuditAction.CAMPAIGN_EDITED
    if before is None:
        what = AuditAction.CAMPAIGN_CREATED
    elif before.terms.published is not after.terms.published:
        shown = after.terms.published
        what = AuditAction.CAMPAIGN_PUBLISHED if shown else AuditAction.CAMPAIGN_UNPUBLISHED
    return AuditNote(now, by, what, (*names, *terms), campaign_id=after.id)


def note_user_change(
    before: User | None, after: User, action: AuditAction, by: UserId | None, now: datetime
) -> AuditNote | None:
    """What was done to a person, or None if nothing changed."""
    edits = tuple(_field_edits(USER_FIELDS, before, after))
    return AuditNote(now, by, action, edits, user_ids=(after.id,)) if edits else None


def user_edits(before: User | None, after: User, *field_names: str) -> tuple[FieldEdit, ...]:
    """Of many people at once: which of these fields changed for one of them."""
    fields = {name: USER_FIELDS[name] for name in field_names}
    return tuple(_field_edits(fields, before, after, after.id))


def _field_edits(
    fields: Mapping[str, str], before: object, after: object, user_id: UserId | None = None
) -> Iterator[FieldEdit]:
    for name, attribute in fields.items():
        was = _to_text(getattr(before, attribute)) if before is not None else None
        is_ = _to_text(getattr(after, attribute))
        if was != is_:
            yield FieldEdit(name, was, is_, user_id)


def _to_text(value: Any) -> str | None:
    """A value in the one way it is told."""
    match value:
        case None | ():
            return None
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.name)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case GroupLimit():
            return f"{value.group}: {value.limit}"
        case Meeting():
            return f"{_to_text(value.start)}/{_to_text(value.end)}"
        case (tuple(), *_):
            return "; ".join(", ".join(each) for each in value)
        case tuple():
            return ", ".join(_to_text(each) or "" for each in value)
        case _:
            return str(value)
