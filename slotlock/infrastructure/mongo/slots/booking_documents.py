"""The shape of a booking: a part of its slot while it is live, a document of its own afterwards.

live:     {id, user, at, groups?}    a booking that its user made, never changed
          {id, user, history, heldUntil?, waitedSince?, waitlistedBy?, movedFrom?, groups?}  others
ended:    {_id, slot, user, history, endedAt, schemaVersion,
           waitedSince?, waitlistedBy?, movedFrom?, movedTo?, groups?}
history:  [{at, by, action, status, heldUntil?, overriddenLimits?, meetingStart?}],
          the oldest entry first
ended waitlist entry: {_id, slot, user, since, at, by, schemaVersion, waitlistedBy?}
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

from bson import ObjectId

from slotlock.domain.booking.booking import (
    BOOKING_FIELDS,
    Booking,
    BookingAction,
    BookingId,
    BookingRef,
    BookingStatus,
    EndedWaitlistEntry,
    HistoryEntry,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.document_parts import unknown_fields, with_schema_version
from slotlock.infrastructure.stored_enums import UNKNOWN_MEMBERS, from_stored, limits_from_stored

# The fields of live bookings and of waitlist entries that this version knows.
KNOWN_FIELDS = (
    *("id", "user", "at", "groups", "history", "heldUntil"),
    *(each.stored_name for each in BOOKING_FIELDS),
)
WAITLIST_ENTRY_FIELDS = ("id", "user", "since", "groups", "waitlistedBy")


def booking_to_subdocument(booking: Booking) -> Document:
    """Return a live booking as the document of its slot contains it."""
    entry: Document = {"id": ObjectId(booking.id), "user": ObjectId(booking.user_id)}
    if booking.stored:
        entry = unknown_fields(booking.stored, KNOWN_FIELDS) | entry
    if booking.groups:
        entry["groups"] = list(booking.groups)
    if _is_plain(booking):
        entry["at"] = booking.history[0].at
        return entry
    if booking.status is BookingStatus.HELD:
        entry["heldUntil"] = booking.held_until
    return {**entry, **_history_fields(booking)}


def _is_plain(booking: Booking) -> bool:
    """Return whether the user made the booking, and it has never changed."""
    first = booking.history[0]
    return (
        len(booking.history) == 1
        and first.by == booking.user_id
        and first.action is BookingAction.BOOKED
        and first.status is BookingStatus.CONFIRMED
        and first.held_until is None
        and not first.overridden_limits
        and _values_of(booking) == _DEFAULTS
    )


def to_booking(slot_id: SlotId, subdocument: Document) -> Booking:
    """Return the live booking that a subdocument of this slot describes."""
    user_id = UserId(str(subdocument["user"]))
    if "history" not in subdocument:
        booked = HistoryEntry(
            subdocument["at"], user_id, BookingAction.BOOKED, BookingStatus.CONFIRMED
        )
        groups = tuple(subdocument.get("groups", ()))
        return Booking(
            BookingId(str(subdocument["id"])),
            slot_id,
            user_id,
            (booked,),
            groups=groups,
            stored=subdocument,
        )
    history = _to_history(subdocument, BookingStatus.CONFIRMED)
    return _build_booking(subdocument["id"], slot_id, user_id, history, subdocument)


def ended_booking_to_document(booking: Booking) -> Document:
    """Return the document of an ended booking."""
    document = {
        **unknown_fields(booking.stored, KNOWN_FIELDS),
        "_id": ObjectId(booking.id),
        "slot": ObjectId(booking.slot_id),
        "user": ObjectId(booking.user_id),
        "endedAt": booking.ended_at,
        **({"groups": list(booking.groups)} if booking.groups else {}),
        **_history_fields(booking),
    }
    return with_schema_version("ended_bookings", document)


def to_ended_booking(document: Document) -> Booking:
    """Return the ended booking that a document describes."""
    slot_id = SlotId(str(document["slot"]))
    user_id = UserId(str(document["user"]))
    history = _to_history(document, BookingStatus.CANCELLED)
    return _build_booking(document["_id"], slot_id, user_id, history, document)


def ended_waitlist_entry_to_document(ended_entry: EndedWaitlistEntry) -> Document:
    """Return the document of a waitlist entry that ended without a booking."""
    document = {
        **unknown_fields(ended_entry.entry.stored, WAITLIST_ENTRY_FIELDS),
        "_id": ObjectId(ended_entry.entry.id),
        "slot": ObjectId(ended_entry.entry.slot_id),
        "user": ObjectId(ended_entry.entry.user_id),
        "since": ended_entry.entry.since,
        "at": ended_entry.at,
        "by": ended_entry.by and ObjectId(ended_entry.by),
        **waitlisted_by_field(ended_entry.entry.waitlisted_by),
    }
    return with_schema_version("ended_waitlist_entries", document)


def to_ended_waitlist_entry(document: Document) -> EndedWaitlistEntry:
    """Return the ended waitlist entry that a document describes."""
    entry = WaitlistEntry(
        WaitlistEntryId(str(document["_id"])),
        SlotId(str(document["slot"])),
        UserId(str(document["user"])),
        document["since"],
        waitlisted_by=to_waitlisted_by(document),
        stored=document,
    )
    return EndedWaitlistEntry(entry, document["at"], document["by"] and UserId(str(document["by"])))


def _build_booking(
    object_id: ObjectId,
    slot_id: SlotId,
    user_id: UserId,
    history: tuple[HistoryEntry, ...],
    document: Document,
) -> Booking:
    booking_id, groups = BookingId(str(object_id)), tuple(document.get("groups", ()))
    declared: dict[str, Any] = {}
    for each in BOOKING_FIELDS:
        if (stored := document.get(each.stored_name)) is not None:
            convert = _FROM_STORED.get(each.value_type)
            declared[each.name] = stored if convert is None else convert(stored)
    return Booking(
        booking_id, slot_id, user_id, history, groups=groups, stored=document, **declared
    )


def waitlisted_by_field(waitlisted_by: UserId | None) -> Document:
    """Return the field for the organizer who put a user on the waiting list, if one did."""
    return {"waitlistedBy": ObjectId(waitlisted_by)} if waitlisted_by else {}


def to_waitlisted_by(document: Document) -> UserId | None:
    """Return the organizer who put the user on the waiting list; None for the user."""
    stored = document.get("waitlistedBy")
    return UserId(str(stored)) if stored else None


def _history_fields(booking: Booking) -> Document:
    fields: Document = {"history": _history_to_subdocuments(booking)}
    for each, value in zip(BOOKING_FIELDS, _values_of(booking), strict=True):
        if value != each.default:
            convert = _TO_STORED.get(each.value_type)
            fields[each.stored_name] = value if convert is None else convert(value)
    return fields


def _history_to_subdocuments(booking: Booking) -> list[Document]:
    """Return the entries as they were stored, followed by the new ones.

    An entry never changes, and a newer version may have stored more than `booking` has of it.
    """
    stored: Any = (booking.stored or {}).get("history", ())
    new_entries = booking.history[len(stored) :]
    return [*stored, *(_history_entry_to_subdocument(entry) for entry in new_entries)]


def _history_entry_to_subdocument(entry: HistoryEntry) -> Document:
    subdocument: Document = {
        "at": entry.at,
        "by": entry.by and ObjectId(entry.by),
        "action": entry.action.value,
        "status": entry.status.value,
    }
    if entry.held_until is not None:
        subdocument["heldUntil"] = entry.held_until
    if entry.overridden_limits:
        subdocument["overriddenLimits"] = [limit.value for limit in entry.overridden_limits]
    if entry.meeting_start is not None:
        subdocument["meetingStart"] = entry.meeting_start
    return subdocument


def _to_history(document: Document, unknown_status: BookingStatus) -> tuple[HistoryEntry, ...]:
    return tuple(_to_history_entry(entry, unknown_status) for entry in document["history"])


def _to_history_entry(subdocument: Document, unknown_status: BookingStatus) -> HistoryEntry:
    return HistoryEntry(
        subdocument["at"],
        UserId(str(subdocument["by"])) if subdocument["by"] else None,
        from_stored(subdocument["action"], BookingAction.OTHER),
        from_stored(subdocument["status"], unknown_status),
        subdocument.get("heldUntil"),
        limits_from_stored(subdocument.get("overriddenLimits", ())),
        subdocument.get("meetingStart"),
    )


def _ref_to_subdocument(ref: BookingRef) -> Document:
    return {"slot": ObjectId(ref.slot_id), "id": ObjectId(ref.booking_id)}


def _to_ref(subdocument: Document) -> BookingRef:
    return BookingRef(SlotId(str(subdocument["slot"])), BookingId(str(subdocument["id"])))


_values_of = attrgetter(*(each.name for each in BOOKING_FIELDS))
_DEFAULTS = tuple(each.default for each in BOOKING_FIELDS)
# By type; others are stored as they are.
_TO_STORED: dict[Any, Callable[[Any], Any]] = {
    **dict.fromkeys(UNKNOWN_MEMBERS, attrgetter("value")),
    BookingRef: _ref_to_subdocument,
    UserId: ObjectId,
}
_FROM_STORED: dict[Any, Callable[[Any], Any]] = {
    **{enum: partial(from_stored, unknown=unknown) for enum, unknown in UNKNOWN_MEMBERS.items()},
    BookingRef: _to_ref,
    UserId: lambda object_id: UserId(str(object_id)),
}
