"""The shape of a slot's document, its indexes and the queries on it.

    {_id, title, start, end, timeZone, location, kind, status, capacity, remaining, version,
     changedAt, words: [str], bookings: [{id, user, at}]}

`bookings` holds the live bookings only, in the order they were made; one that ended moves to a
document of its own, `{_id, slot, user, at, cancelledAt}`, in the same transaction.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from bson import ObjectId

from slotlock.domain.booking import Decision
from slotlock.domain.listing import Position, SlotFilter, SlotOrder
from slotlock.domain.people import UserId
from slotlock.domain.slots import (
    Booking,
    BookingId,
    BookingStatus,
    Slot,
    SlotId,
    SlotKind,
    SlotStatus,
)
from slotlock.stores.mongo import Document

FIELDS = (
    *("title", "start", "end", "timeZone", "location", "kind"),
    *("status", "capacity", "remaining", "version", "changedAt"),
)
INDEXES = {
    "list": [("status", 1), ("start", 1), ("_id", 1)],
    "kind": [("status", 1), ("kind", 1), ("start", 1), ("_id", 1)],
    "words": [("status", 1), ("words", 1)],
    "person": [("bookings.user", 1), ("start", 1), ("_id", 1)],
}
MAX_SEARCH_WORDS = 5


def slot_of(document: Document) -> Slot:
    """The slot that a document describes."""
    slot_id = SlotId(str(document["_id"]))
    return Slot(
        id=slot_id,
        title=document["title"],
        start=document["start"],
        end=document["end"],
        time_zone=document["timeZone"],
        capacity=document["capacity"],
        taken=document["capacity"] - document["remaining"],
        location=document["location"],
        kind=SlotKind(document["kind"]),
        status=SlotStatus(document["status"]),
        version=document["version"],
        changed_at=document["changedAt"],
        bookings=tuple(_live_booking(slot_id, entry) for entry in document["bookings"]),
    )


def fields_of(slot: Slot) -> Document:
    """Everything of a slot but its bookings."""
    return {
        "title": slot.title,
        "start": slot.start,
        "end": slot.end,
        "timeZone": slot.time_zone,
        "location": slot.location,
        "kind": slot.kind.value,
        "status": slot.status.value,
        "capacity": slot.capacity,
        "remaining": slot.remaining,
        "version": slot.version,
        "changedAt": slot.changed_at,
        "words": words(f"{slot.title} {slot.location or ''}"),
    }


def words(text: str) -> list[str]:
    """The words of a text as they are searched for: folded, each once."""
    return sorted(set(re.findall(r"\w+", text.casefold())))


def guard(before: Slot) -> Document:
    """Matches the slot only as it was looked at.

    The version is what makes overselling impossible, whatever became of the lock meanwhile.
    """
    return {"_id": ObjectId(before.id), "version": before.version}


def update_of(before: Slot, decision: Decision[Any]) -> Document:
    """The change alone: what it costs does not grow with the roster."""
    after = decision.slot
    update: Document = {
        "$set": {"version": after.version, "changedAt": after.changed_at},
        "$inc": {"remaining": before.taken - after.taken},
    }
    if decision.added:
        update["$push"] = {"bookings": {"$each": [_live_entry(b) for b in decision.added]}}
    if decision.removed:
        gone = [ObjectId(booking.id) for booking in decision.removed]
        update["$pull"] = {"bookings": {"id": {"$in": gone}}}
    return update


def seen_by(people: Iterable[UserId], booking_ids: Iterable[BookingId] = ()) -> Document:
    """The projection that leaves out every booking but these people's and these.

    The booker of a one-place slot is read along: `bookedBy` needs them.
    """
    asked = [
        {"$in": ["$$this.user", [ObjectId(user_id) for user_id in people]]},
        {"$in": ["$$this.id", [ObjectId(booking_id) for booking_id in booking_ids]]},
        {"$eq": ["$capacity", 1]},
    ]
    bookings = {"$filter": {"input": "$bookings", "cond": {"$or": asked}}}
    return {**dict.fromkeys(FIELDS, 1), "bookings": bookings}


def seen_among(booking_ids: Sequence[ObjectId]) -> Document:
    """The projection to the ids of those of these bookings that are live."""
    among = {"$in": ["$$this.id", booking_ids]}
    return {"bookings": {"$filter": {"input": "$bookings", "cond": among}}}


def matching(wanted: SlotFilter) -> Document:
    """The query for the slots that somebody looks for."""
    query: Document = {"status": wanted.status.value}
    if wanted.kind is not None:
        query["kind"] = wanted.kind.value
    start = {"$gte": wanted.starts_from, "$lt": wanted.starts_before}
    if bounds := {operator: time for operator, time in start.items() if time is not None}:
        query["start"] = bounds
    if wanted.with_places_left:
        query["remaining"] = {"$gt": 0}
    if wanted.text is not None:
        # Anchored prefixes of folded words: an index serves them, and "yog" finds "Yoga".
        begun = words(wanted.text)[:MAX_SEARCH_WORDS]
        query["words"] = {"$all": [re.compile(f"^{word}") for word in begun]}
    return query


def after_position(query: Document, position: Position | None, order: SlotOrder) -> Document:
    """The same query from a position on, bounded so that the index is entered at the position."""
    if position is None:
        return query
    past = "$gt" if order is SlotOrder.START_ASC else "$lt"
    here = {"start": position.start, "_id": {past: ObjectId(position.id)}}
    on = [
        {"start": {f"{past}e": position.start}},
        {"$or": [{"start": {past: position.start}}, here]},
    ]
    return {"$and": [query, *on]}


def ended_document(booking: Booking) -> Document:
    """The document of a booking that was cancelled."""
    return {
        "_id": ObjectId(booking.id),
        "slot": ObjectId(booking.slot_id),
        "user": ObjectId(booking.user_id),
        "at": booking.created_at,
        "cancelledAt": booking.cancelled_at,
    }


def ended_booking(document: Document) -> Booking:
    """The cancelled booking that a document describes."""
    live = {"id": document["_id"], "user": document["user"], "at": document["at"]}
    booking = _live_booking(SlotId(str(document["slot"])), live)
    return replace(booking, status=BookingStatus.CANCELLED, cancelled_at=document["cancelledAt"])


def _live_entry(booking: Booking) -> Document:
    return {
        "id": ObjectId(booking.id),
        "user": ObjectId(booking.user_id),
        "at": booking.created_at,
    }


def _live_booking(slot_id: SlotId, entry: Document) -> Booking:
    return Booking(
        BookingId(str(entry["id"])),
        slot_id,
        UserId(str(entry["user"])),
        BookingStatus.CONFIRMED,
        entry["at"],
    )
