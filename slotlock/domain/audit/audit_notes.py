"""Audit notes: one record for each change that an organizer makes, with the changed fields.

Changes of a booking are part of the booking's own history. Every other change leaves a note, which
is written in the same transaction as the change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum

from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.staff_edits import is_reordered
from slotlock.domain.booking.booking import Booking, BookingStatus, SlotId
from slotlock.domain.booking.slot import SLOT_FIELDS, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit, NoShowLimit
from slotlock.domain.resources.resource import Resource
from slotlock.domain.schedule.holidays import HolidayList
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.facts import attributes_of, camel_case
from slotlock.domain.shared.unchanged import Unchanged
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site.site import SITE_FIELDS, SiteValues
from slotlock.domain.users.identity import Identity
from slotlock.domain.users.user import User, UserId


def api_names(declared_by: type, but: Collection[str] = ()) -> dict[str, str]:
    """Return the names of the attributes of a class by those that clients know."""
    return {camel_case(name): name for name in attributes_of(declared_by) if name not in but}


# Attribute names by the field names that clients know. One edit has all rooms, however many.
NOTED_SLOT_FIELDS = {
    field.api_name: field.name
    for field in SLOT_FIELDS
    if field.api_name and field.name != "resource"
} | {"resources": "resources"}
# The time and place of a slot.
SCHEDULE_FIELDS = {
    name: NOTED_SLOT_FIELDS[name]
    for name in (
        *("startTime", "endTime", "meetings", "timeZone", "location", "resources", "meetingUrl"),
    )
}
NOTED_DESCRIPTION_LENGTH = 200
TERMS_FIELDS = api_names(CampaignTerms, but=("campaign_id", "version", "stored"))
HOLIDAY_LIST_FIELDS = api_names(HolidayList, but=("id",))
RESOURCE_FIELDS = {"name": "name", "kind": "kind", "leader": "leader_ref"}
USER_FIELDS = {
    "email": "email",
    "username": "username",
    "name": "name",
    "role": "role",
    "groups": "groups",
    "banned": "banned",
    "banReason": "ban_reason",
    "selfRegistered": "self_registered",
    "phone": "phone",
    "guardians": "guardian_refs",
}
# A note says that they changed, and not the values.
UNNOTED_VALUES = {"phone"}
# What an import changes; a claim takes the password from an account.
IMPORTED_USER_FIELDS = {**USER_FIELDS, "hasPassword": "has_password"}


@value_object
class AuditNote:
    """One change; `by` is None for the command line, `user_ids` are the users it concerns.

    `resource` and `holiday_list` are the name of one, and `webhook` is the server of one.
    """

    at: datetime
    by: UserId | None
    action: NoteAction
    edits: tuple[FieldEdit, ...]
    slot_id: SlotId | None = None
    campaign_id: CampaignId | None = None
    user_ids: tuple[UserId, ...] = ()
    resource: str | None = None
    holiday_list: str | None = None
    webhook: str | None = None


def note_slot_change(
    before: Slot | None, after: SlotState, by: UserId, old_description: str | None = None
) -> AuditNote | None:
    """Return the note of a slot's change; None if only its bookings changed."""
    slot, description = after.slot, _description_edits(old_description, after.change.description)
    edits = (*field_edits(NOTED_SLOT_FIELDS, before, slot), *description)
    if slot.cancellation and slot.cancellation.reason and not (before and before.cancellation):
        edits = (*edits, FieldEdit("cancelReason", None, slot.cancellation.reason))
    campaign_id = slot.terms.campaign_id if slot.terms else None
    note = AuditNote(after.changed_at, by, _slot_action(before, slot), edits, slot.id, campaign_id)
    return note if edits else None


def note_slot_deletion(slot: Slot, by: UserId, at: datetime) -> AuditNote:
    """Return the note of a slot's deletion, with the fields that it had."""
    edits = tuple(field_edits(NOTED_SLOT_FIELDS, slot, None))
    campaign_id = slot.terms.campaign_id if slot.terms else None
    return AuditNote(at, by, NoteAction.SLOT_DELETED, edits, slot.id, campaign_id)


def _description_edits(
    before: str | Unchanged | None, after: str | Unchanged | None
) -> Iterator[FieldEdit]:
    """Yield the beginnings of two descriptions, unless they are equal or none was given."""
    if not isinstance(after, Unchanged) and (after or None) != (before or None):
        yield FieldEdit("description", _beginning(before), _beginning(after))


def _beginning(description: str | Unchanged | None) -> str | None:
    known = description if isinstance(description, str) else None
    return known[:NOTED_DESCRIPTION_LENGTH] if known else None


def _slot_action(before: Slot | None, after: Slot) -> NoteAction:
    if before is None:
        return NoteAction.SLOT_CREATED
    if before.status is after.status:
        return NoteAction.SLOT_EDITED
    if after.status is SlotStatus.CANCELLED:
        return NoteAction.SLOT_CANCELLED
    return NoteAction.SLOT_PUBLISHED


def merged_schedule_edits(edits: Iterable[FieldEdit]) -> tuple[FieldEdit, ...]:
    """Return consecutive edits of a slot's time and place as one, from first to last values."""
    merged = dict[str, FieldEdit]()
    for edit in edits:
        if edit.field in SCHEDULE_FIELDS:
            first = merged.get(edit.field, edit)
            merged[edit.field] = FieldEdit(edit.field, first.before, edit.after)
    return tuple(edit for edit in merged.values() if edit.before != edit.after)


def schedule_edits(before: Slot, after: Slot) -> tuple[FieldEdit, ...]:
    """Return the changes of a slot's time and place."""
    # Most changes of a slot leave both alone.
    if before.revision == after.revision and before.resources == after.resources:
        return ()
    return tuple(field_edits(SCHEDULE_FIELDS, before, after))


def edits_shown_with(booking: Booking, edits: Iterable[FieldEdit]) -> tuple[FieldEdit, ...]:
    """Return the edits that the user of a booking may see: a link only with a sure place.

    The same resources in another order are no news.
    """
    has_place = booking.status is BookingStatus.CONFIRMED
    shown = (each for each in edits if has_place or each.field != "meetingUrl")
    return tuple(each for each in shown if not is_reordered(each))


def note_campaign_change(
    before: Campaign | None, after: Campaign, by: UserId | None, now: datetime
) -> AuditNote:
    """Return the note of a campaign's change."""
    old_description = None if before is None else before.description
    description = _description_edits(old_description, after.description)
    edits = (*_campaign_edits(before, after), *description)
    return AuditNote(now, by, _campaign_action(before, after), edits, campaign_id=after.id)


def note_campaign_deletion(campaign: Campaign, by: UserId, now: datetime) -> AuditNote:
    """Return the note of a campaign's deletion, with the fields that it had."""
    edits = tuple(_campaign_edits(campaign, None))
    return AuditNote(now, by, NoteAction.CAMPAIGN_DELETED, edits, campaign_id=campaign.id)


def _campaign_edits(before: Campaign | None, after: Campaign | None) -> Iterator[FieldEdit]:
    yield from field_edits({"name": "name", "mailNote": "mail_note"}, before, after)
    yield from field_edits(TERMS_FIELDS, before and before.terms, after and after.terms)


def _campaign_action(before: Campaign | None, after: Campaign) -> NoteAction:
    if before is None:
        return NoteAction.CAMPAIGN_CREATED
    if before.terms.published is after.terms.published:
        return NoteAction.CAMPAIGN_EDITED
    if after.terms.published:
        return NoteAction.CAMPAIGN_PUBLISHED
    return NoteAction.CAMPAIGN_UNPUBLISHED


def note_resource_change(
    before: Resource | None, after: Resource | None, by: UserId | None, now: datetime
) -> AuditNote | None:
    """Return the note of a resource's change, creation or deletion; None if nothing changed."""
    actions = NoteAction.RESOURCE_CREATED, NoteAction.RESOURCE_EDITED, NoteAction.RESOURCE_DELETED
    edits, shown = tuple(field_edits(RESOURCE_FIELDS, before, after)), after or before
    name = shown.name if shown else None
    note = AuditNote(now, by, _action_of(before, after, *actions), edits, resource=name)
    return note if edits else None


def note_holiday_list_change(
    before: HolidayList | None, after: HolidayList | None, by: UserId, now: datetime
) -> AuditNote | None:
    """Return the note of a list's change, creation or deletion; None if nothing changed."""
    created, edited = NoteAction.HOLIDAY_LIST_CREATED, NoteAction.HOLIDAY_LIST_EDITED
    action = _action_of(before, after, created, edited, NoteAction.HOLIDAY_LIST_DELETED)
    edits, shown = tuple(field_edits(HOLIDAY_LIST_FIELDS, before, after)), after or before
    note = AuditNote(now, by, action, edits, holiday_list=shown.name if shown else None)
    return note if edits else None


def _action_of(
    before: object, after: object, created: NoteAction, edited: NoteAction, deleted: NoteAction
) -> NoteAction:
    if before is None:
        return created
    return deleted if after is None else edited


def note_period_change(
    before: Sequence[Period], after: Sequence[Period], by: UserId, now: datetime
) -> AuditNote | None:
    """Return the note of a change of the periods of a school day; None if nothing changed."""
    texts = _to_text(tuple(before)), _to_text(tuple(after))
    edits = (FieldEdit("periods", *texts),)
    return AuditNote(now, by, NoteAction.PERIODS_EDITED, edits) if texts[0] != texts[1] else None


def note_site_change(
    before: SiteValues, after: SiteValues, by: UserId, now: datetime
) -> AuditNote | None:
    """Return the note of a change of the site's own values; None if nothing changed."""
    edits = tuple(
        FieldEdit(each.field, each.before or None, each.after or None)
        for each in field_edits(SITE_FIELDS, before, after)
    )
    return AuditNote(now, by, NoteAction.SITE_EDITED, edits) if edits else None


def note_user_change(
    before: User | None, after: User, action: NoteAction, by: UserId | None, now: datetime
) -> AuditNote | None:
    """Return the note of a user's change; None if nothing changed."""
    edits = tuple(field_edits(USER_FIELDS, before, after))
    return AuditNote(now, by, action, edits, user_ids=(after.id,)) if edits else None


def note_sign_in(
    before: Identity | None,
    after: Identity | None,
    user_id: UserId,
    by: UserId | None,
    at: datetime,
) -> AuditNote:
    """Return the note of an identity that a user got or lost."""
    action = NoteAction.SIGN_IN_LINKED if after else NoteAction.SIGN_IN_UNLINKED
    edits = tuple(field_edits({"subject": "key"}, before, after))
    return AuditNote(at, by, action, edits, user_ids=(user_id,))


def user_edits(before: User | None, after: User, *field_names: str) -> tuple[FieldEdit, ...]:
    """Return which of these fields changed for one of many users, naming the user."""
    fields = {name: IMPORTED_USER_FIELDS[name] for name in field_names}
    return tuple(field_edits(fields, before, after, after.id))


def field_edits(
    fields: Mapping[str, str], before: object, after: object, user_id: UserId | None = None
) -> Iterator[FieldEdit]:
    """Yield what changed of these attributes, by the names that clients know."""
    for name, attribute in fields.items():
        old_text = _to_text(getattr(before, attribute)) if before is not None else None
        new_text = _to_text(getattr(after, attribute)) if after is not None else None
        if old_text != new_text:
            values = (None, None) if name in UNNOTED_VALUES else (old_text, new_text)
            yield FieldEdit(name, *values, user_id)


def _to_text(value: object) -> str | None:
    """Return the value as text; None for None and for an empty list."""
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
        case NoShowLimit():
            return f"{value.count} no-shows, {value.days} days"
        case Meeting():
            return f"{_to_text(value.start)}/{_to_text(value.end)}"
        case (tuple(), *_):
            return "; ".join(_to_text(group_set) or "" for group_set in value)
        case tuple():
            return ", ".join(_to_text(item) or "" for item in value)
        case _:
            return str(value)
