"""Notes of what organisers do: who, when, what, and the fields that changed, before and after.

What happens to a booking is a part of the booking (see `record`); everything else that organisers
change leaves a note, which is written with the change or not at all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from slotlock.domain.audit import Edit, Happening
from slotlock.domain.bookings import SlotId
from slotlock.domain.campaigns import Campaign
from slotlock.domain.meetings import Meeting
from slotlock.domain.people import User, UserId
from slotlock.domain.slots import Slot, SlotStatus
from slotlock.domain.terms import CampaignId, GroupLimit

# The fields as clients know them, and as the domain does.
OF_SLOTS = {
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
    "cancelCutoffMinutes": "cutoff_minutes",
    "waitlistCapacity": "waitlist_capacity",
    "waitlistOfferMinutes": "offer_minutes",
    "choice": "choice",
    "groupLimits": "group_limits",
    "resource": "resource",
}
OF_TERMS = {
    "published": "published",
    "opensAt": "opens_at",
    "closesAt": "closes_at",
    "eligibleGroups": "eligible",
    "maxBookings": "most",
    "forbidOverlap": "forbid_overlap",
    "groupLimits": "group_limits",
    "cancelUntil": "cancel_until",
}
OF_PEOPLE = {
    "email": "email",
    "name": "name",
    "role": "role",
    "groups": "groups",
    "banned": "banned",
    "banReason": "ban_reason",
}


@dataclass(frozen=True, slots=True)
class Note:
    """One act. `by` is None for the command line; `user_ids` are those to whom it was done."""

    at: datetime
    by: UserId | None
    what: Happening
    edits: tuple[Edit, ...]
    slot_id: SlotId | None = None
    campaign_id: CampaignId | None = None
    user_ids: tuple[UserId, ...] = ()


def slot_note(before: Slot | None, after: Slot, by: UserId) -> Note | None:
    """What was done to a slot, or None if nothing of it changed but its bookings."""
    edits = tuple(_edits(OF_SLOTS, before, after))
    campaign_id = after.terms.campaign_id if after.terms else None
    note = Note(after.changed_at, by, _of_slot(before, after), edits, after.id, campaign_id)
    return note if edits else None


def _of_slot(before: Slot | None, after: Slot) -> Happening:
    if before is None:
        return Happening.SLOT_CREATED
    if before.status is after.status:
        return Happening.SLOT_EDITED
    called_off = after.status is SlotStatus.CANCELLED
    return Happening.SLOT_CALLED_OFF if called_off else Happening.SLOT_PUBLISHED


def campaign_note(
    before: Campaign | None, after: Campaign, by: UserId | None, now: datetime
) -> Note:
    """What was done to a campaign."""
    names = _edits({"name": "name"}, before, after)
    terms = _edits(OF_TERMS, before and before.terms, after.terms)
    what = Happening.CAMPAIGN_EDITED
    if before is None:
        what = Happening.CAMPAIGN_CREATED
    elif before.terms.published is not after.terms.published:
        shown = after.terms.published
        what = Happening.CAMPAIGN_PUBLISHED if shown else Happening.CAMPAIGN_UNPUBLISHED
    return Note(now, by, what, (*names, *terms), campaign_id=after.id)


def person_note(
    before: User | None, after: User, what: Happening, by: UserId | None, now: datetime
) -> Note | None:
    """What was done to a person, or None if nothing changed."""
    edits = tuple(_edits(OF_PEOPLE, before, after))
    return Note(now, by, what, edits, user_ids=(after.id,)) if edits else None


def person_edits(before: User | None, after: User, *names: str) -> tuple[Edit, ...]:
    """Of many people at once: which of these fields changed for one of them."""
    fields = {name: OF_PEOPLE[name] for name in names}
    return tuple(_edits(fields, before, after, after.id))


def _edits(
    fields: Mapping[str, str], before: object, after: object, user_id: UserId | None = None
) -> Iterator[Edit]:
    for name, attribute in fields.items():
        was = _told(getattr(before, attribute)) if before is not None else None
        is_ = _told(getattr(after, attribute))
        if was != is_:
            yield Edit(name, was, is_, user_id)


def _told(value: Any) -> str | None:
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
            return f"{_told(value.start)}/{_told(value.end)}"
        case (tuple(), *_):
            return "; ".join(", ".join(each) for each in value)
        case tuple():
            return ", ".join(_told(each) or "" for each in value)
        case _:
            return str(value)
