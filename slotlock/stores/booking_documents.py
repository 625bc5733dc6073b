"""The shape of a booking: an entry in its slot while it lives, a document of its own afterwards.

live:   {id, user, at, groups?}                        somebody's plain booking
        {id, user, log, until?, waited?, from?, groups?}   any other; `until` of a hold
ended:  {_id, slot, user, log, endedAt, waited?, from?, to?, groups?}
log:    [{at, by, do, to, until?, over?}]              the whole record, oldest first
turns in the waiting list that ended without a place: {_id, slot, user, since, at, by}
"""

from typing import Any

from bson import ObjectId

from slotlock.domain.bookings import Booking, BookingId, BookingRef, Left, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Deed, Entry, Limit
from slotlock.stores.mongo import Document


def entry_of(booking: Booking) -> Document:
    """A live booking as its slot keeps it."""
    entry: Document = {"id": ObjectId(booking.id), "user": ObjectId(booking.user_id)}
    if booking.groups:
        entry["groups"] = list(booking.groups)
    first = booking.log[0]
    if booking.log == (Entry(first.at, booking.user_id, Deed.BOOKED, BookingStatus.CONFIRMED),):
        return {**entry, "at": first.at}
    if booking.status is BookingStatus.HELD:
        entry["until"] = booking.held_until
    return {**entry, **_past(booking)}


def booking_of(slot_id: SlotId, entry: Document) -> Booking:
    """The live booking that an entry of this slot describes."""
    user_id = UserId(str(entry["user"]))
    if "log" not in entry:
        log = (Entry(entry["at"], user_id, Deed.BOOKED, BookingStatus.CONFIRMED),)
        groups = tuple(entry.get("groups", ()))
        return Booking(BookingId(str(entry["id"])), slot_id, user_id, log, groups=groups)
    return _booking(BookingId(str(entry["id"])), slot_id, user_id, entry)


def ended_document(booking: Booking) -> Document:
    """The document of a booking that ended."""
    return {
        "_id": ObjectId(booking.id),
        "slot": ObjectId(booking.slot_id),
        "user": ObjectId(booking.user_id),
        "endedAt": booking.ended_at,
        **({"groups": list(booking.groups)} if booking.groups else {}),
        **_past(booking),
    }


def ended_booking(document: Document) -> Booking:
    """The ended booking that a document describes."""
    slot_id = SlotId(str(document["slot"]))
    user_id = UserId(str(document["user"]))
    return _booking(BookingId(str(document["_id"])), slot_id, user_id, document)


def left_document(left: Left) -> Document:
    """The document of a turn in the waiting list that ended without a place."""
    return {
        "_id": ObjectId(left.waiting.id),
        "slot": ObjectId(left.waiting.slot_id),
        "user": ObjectId(left.waiting.user_id),
        "since": left.waiting.since,
        "at": left.at,
        "by": left.by and ObjectId(left.by),
    }


def _booking(
    booking_id: BookingId, slot_id: SlotId, user_id: UserId, document: Document
) -> Booking:
    log = tuple(_entry_of(entry) for entry in document["log"])
    moved_from, moved_to = (_ref_of(document.get(name)) for name in ("from", "to"))
    waited = document.get("waited")
    groups = tuple(document.get("groups", ()))
    return Booking(booking_id, slot_id, user_id, log, waited, moved_from, moved_to, groups)


def _past(booking: Booking) -> Document:
    past: Document = {
        "log": [_log_entry(entry) for entry in booking.log],
        "waited": booking.waited_since,
        "from": _ref(booking.moved_from),
        "to": _ref(booking.moved_to),
    }
    return {name: value for name, value in past.items() if value is not None}


def _log_entry(entry: Entry) -> Document:
    kept: Document = {
        "at": entry.at,
        "by": entry.by and ObjectId(entry.by),
        "do": entry.deed.value,
        "to": entry.after.value,
    }
    if entry.held_until is not None:
        kept["until"] = entry.held_until
    if entry.overrode:
        kept["over"] = [limit.value for limit in entry.overrode]
    return kept


def _entry_of(kept: Document) -> Entry:
    return Entry(
        kept["at"],
        UserId(str(kept["by"])) if kept["by"] else None,
        Deed(kept["do"]),
        BookingStatus(kept["to"]),
        kept.get("until"),
        tuple(Limit(limit) for limit in kept.get("over", ())),
    )


def _ref(ref: BookingRef | None) -> Document | None:
    return {"slot": ObjectId(ref.slot_id), "id": ObjectId(ref.booking_id)} if ref else None


def _ref_of(kept: Any) -> BookingRef | None:
    return kept and BookingRef(SlotId(str(kept["slot"])), BookingId(str(kept["id"])))
