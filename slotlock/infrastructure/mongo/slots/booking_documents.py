"""The shape of a booking: a part of its slot while it is live, a document of its own afterwards.

live:     {id, user, at, groups?}    a booking that its user made, never changed
          {id, user, history, heldUntil?, waitedSince?, movedFrom?, groups?}    any other
ended:    {_id, slot, user, history, endedAt, waitedSince?, movedFrom?, movedTo?, groups?}
history:  [{at, by, action, status, heldUntil?, overriddenLimits?}], the oldest entry first
ended waitlist entry: {_id, slot, user, since, at, by}
"""

from typing import Any

from bson import ObjectId

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingLimit,
    BookingRef,
    BookingStatus,
    EndedWaitlistEntry,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document

# The fields of a live booking that this version knows.
BOOKING_FIELDS = (
    *("id", "user", "at", "groups", "history"),
    *("heldUntil", "waitedSince", "movedFrom", "movedTo"),
)


def booking_to_subdocument(booking: Booking) -> Document:
    """Return a live booking as the document of its slot contains it."""
    entry: Document = {"id": ObjectId(booking.id), "user": ObjectId(booking.user_id)}
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
    )


def to_booking(slot_id: SlotId, subdocument: Document) -> Booking:
    """Return the live booking that a subdocument of this slot describes."""
    user_id = UserId(str(subdocument["user"]))
    if "history" not in subdocument:
        history = (
            HistoryEntry(subdocument["at"], user_id, BookingAction.BOOKED, BookingStatus.CONFIRMED),
        )
        groups = tuple(subdocument.get("groups", ()))
        return Booking(BookingId(str(subdocument["id"])), slot_id, user_id, history, groups=groups)
    return _build_booking(BookingId(str(subdocument["id"])), slot_id, user_id, subdocument)


def ended_booking_to_document(booking: Booking) -> Document:
    """Return the document of an ended booking."""
    return {
        "_id": ObjectId(booking.id),
        "slot": ObjectId(booking.slot_id),
        "user": ObjectId(booking.user_id),
        "endedAt": booking.ended_at,
        **({"groups": list(booking.groups)} if booking.groups else {}),
        **_history_fields(booking),
    }


def to_ended_booking(document: Document) -> Booking:
    """Return the ended booking that a document describes."""
    slot_id = SlotId(str(document["slot"]))
    user_id = UserId(str(document["user"]))
    return _build_booking(BookingId(str(document["_id"])), slot_id, user_id, document)


def ended_waitlist_entry_to_document(ended_entry: EndedWaitlistEntry) -> Document:
    """Return the document of a waitlist entry that ended without a booking."""
    return {
        "_id": ObjectId(ended_entry.entry.id),
        "slot": ObjectId(ended_entry.entry.slot_id),
        "user": ObjectId(ended_entry.entry.user_id),
        "since": ended_entry.entry.since,
        "at": ended_entry.at,
        "by": ended_entry.by and ObjectId(ended_entry.by),
    }


def _build_booking(
    booking_id: BookingId, slot_id: SlotId, user_id: UserId, document: Document
) -> Booking:
    history = tuple(_to_history_entry(entry) for entry in document["history"])
    moved_from, moved_to = (_to_ref(document.get(name)) for name in ("movedFrom", "movedTo"))
    waited_since = document.get("waitedSince")
    groups = tuple(document.get("groups", ()))
    return Booking(
        booking_id, slot_id, user_id, history, waited_since, moved_from, moved_to, groups
    )


def _history_fields(booking: Booking) -> Document:
    fields: Document = {
        "history": [_history_entry_to_subdocument(entry) for entry in booking.history],
        "waitedSince": booking.waited_since,
        "movedFrom": _ref_to_subdocument(booking.moved_from),
        "movedTo": _ref_to_subdocument(booking.moved_to),
    }
    return {name: value for name, value in fields.items() if value is not None}


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
    return subdocument


def _to_history_entry(subdocument: Document) -> HistoryEntry:
    return HistoryEntry(
        subdocument["at"],
        UserId(str(subdocument["by"])) if subdocument["by"] else None,
        BookingAction(subdocument["action"]),
        BookingStatus(subdocument["status"]),
        subdocument.get("heldUntil"),
        tuple(BookingLimit(limit) for limit in subdocument.get("overriddenLimits", ())),
    )


def _ref_to_subdocument(ref: BookingRef | None) -> Document | None:
    return {"slot": ObjectId(ref.slot_id), "id": ObjectId(ref.booking_id)} if ref else None


def _to_ref(subdocument: Any) -> BookingRef | None:
    return subdocument and BookingRef(
        SlotId(str(subdocument["slot"])), BookingId(str(subdocument["id"]))
    )
