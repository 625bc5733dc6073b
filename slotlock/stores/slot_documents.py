"""The shape of a slot's document and the change to it.

    {_id, title, start, end, timeZone, location, kind, status, capacity, remaining, version,
     changedAt, holdMinutes, cutoffMinutes, waitlistCapacity, offerMinutes, choice, words: [str],
     calledOff: {at, by}, campaign?: terms, groupLimits?, meetings?: [{start, end}], resource,
     revision, revisedAt, series?, due?, bookings: [booking], waiting: [{id, user, at, groups?}]}

`bookings` holds the live bookings only, in the order they were made, and `waiting` the line, the
first in front. What ends moves to a document of its own in the same transaction (see
booking_documents). `due` is no later than the next hold runs out.
"""

import re
from collections.abc import Iterable
from typing import Any

from bson import ObjectId

from slotlock.domain.bookings import SlotId, WaitId, Waiting
from slotlock.domain.meetings import Meeting
from slotlock.domain.people import UserId
from slotlock.domain.slots import CalledOff, SeriesId, Slot, SlotKind, SlotStatus
from slotlock.stores.booking_documents import booking_of, entry_of
from slotlock.stores.mongo import Document
from slotlock.stores.terms_documents import limit_documents, limits_of, terms_document, terms_of

# What a person reads of a slot: its name in the document and in the domain.
PLAIN = {
    "title": "title",
    "start": "start",
    "end": "end",
    "timeZone": "time_zone",
    "location": "location",
    "capacity": "capacity",
    "version": "version",
    "changedAt": "changed_at",
    "holdMinutes": "hold_minutes",
    "cutoffMinutes": "cutoff_minutes",
    "waitlistCapacity": "waitlist_capacity",
    "offerMinutes": "offer_minutes",
    "choice": "choice",
    "resource": "resource",
    "revision": "revision",
    "revisedAt": "revised_at",
}
SHAPED = ("kind", "status", "calledOff", "campaign", "groupLimits", "meetings", "series")
OPTIONAL = ("campaign", "groupLimits", "meetings", "series")
FIELDS = (*PLAIN, *SHAPED, "remaining")
ONLY_IF_SET = {"partialFilterExpression": {"due": {"$exists": True}}}
# Not `$type`: MongoDB would not see that a choice which is asked for is a string.
ONLY_OF_CHOICES = {"partialFilterExpression": {"choice": {"$gt": ""}}}
ONLY_OF_RESOURCES = {"partialFilterExpression": {"resource": {"$gt": ""}}}
ONLY_OF_CAMPAIGNS = {"partialFilterExpression": {"campaign.id": {"$exists": True}}}
ONLY_OF_SERIES = {"partialFilterExpression": {"series": {"$exists": True}}}
# A plain booking has no log, so that it costs what it did without this index.
ONLY_IF_LOGGED = {"partialFilterExpression": {"bookings.log.by": {"$exists": True}}}
ONLY_IF_CALLED_OFF = {"partialFilterExpression": {"calledOff.by": {"$exists": True}}}
INDEXES: dict[str, tuple[list[tuple[str, int]], Document]] = {
    "list": ([("status", 1), ("start", 1), ("_id", 1)], {}),
    "kind": ([("status", 1), ("kind", 1), ("start", 1), ("_id", 1)], {}),
    "words": ([("status", 1), ("words", 1)], {}),
    "person": ([("bookings.user", 1), ("start", 1), ("_id", 1)], {}),
    "waiting": ([("waiting.user", 1)], {"sparse": True}),
    "end": ([("end", 1), ("_id", 1)], {}),
    "due": ([("due", 1)], ONLY_IF_SET),
    "choice": ([("choice", 1), ("bookings.user", 1)], ONLY_OF_CHOICES),
    "campaign": ([("campaign.id", 1), ("start", 1), ("_id", 1)], ONLY_OF_CAMPAIGNS),
    "resource": ([("resource", 1), ("start", 1)], ONLY_OF_RESOURCES),
    "series": ([("series", 1), ("start", 1), ("_id", 1)], ONLY_OF_SERIES),
    "doer": ([("bookings.log.by", 1)], ONLY_IF_LOGGED),
    "called_off": ([("calledOff.by", 1)], ONLY_IF_CALLED_OFF),
}


def slot_of(document: Document) -> Slot:
    """The slot that a document describes."""
    slot_id = SlotId(str(document["_id"]))
    line, mine = document["waiting"], document.get("mine", ())
    heads = [entry["id"] for entry in line]
    waiting = [*line, *(entry for entry in mine if entry["id"] not in heads)]
    return Slot(
        id=slot_id,
        **{name: document[field] for field, name in PLAIN.items() if field in document},
        taken=document["capacity"] - document["remaining"],
        kind=SlotKind(document["kind"]),
        status=SlotStatus(document["status"]),
        called_off=_called_off_of(document.get("calledOff")),
        terms=terms_of(document["campaign"]) if document.get("campaign") else None,
        group_limits=limits_of(document.get("groupLimits") or ()),
        meetings=tuple(Meeting(m["start"], m["end"]) for m in document.get("meetings") or ()),
        series_id=SeriesId(str(document["series"])) if document.get("series") else None,
        bookings=tuple(booking_of(slot_id, entry) for entry in document["bookings"]),
        waiting=tuple(waiting_of(slot_id, entry) for entry in waiting),
        heads=len(heads),
        waiting_count=document.get("waitingCount", len(line)),
        group_counts={each["group"]: each["count"] for each in document.get("groupCounts", ())},
        due=document.get("due"),
    )


def waiting_of(slot_id: SlotId, entry: Document) -> Waiting:
    """The turn that an entry of this slot's line describes."""
    wait_id, user_id = WaitId(str(entry["id"])), UserId(str(entry["user"]))
    return Waiting(wait_id, slot_id, user_id, entry["at"], tuple(entry.get("groups", ())))


def fields_of(slot: Slot) -> Document:
    """Everything of a slot but its bookings and its waiting list."""
    fields = {
        **{field: getattr(slot, name) for field, name in PLAIN.items()},
        "kind": slot.kind.value,
        "status": slot.status.value,
        "calledOff": _called_off(slot.called_off),
        "remaining": slot.remaining,
        "words": words(f"{slot.title} {slot.location or ''}"),
    }
    if slot.terms is not None:
        fields["campaign"] = terms_document(slot.terms)
    if slot.group_limits:
        fields["groupLimits"] = limit_documents(slot.group_limits)
    if slot.meetings:
        fields["meetings"] = [{"start": m.start, "end": m.end} for m in slot.meetings]
    if slot.series_id is not None:
        fields["series"] = ObjectId(slot.series_id)
    return fields


def new_document(slot: Slot) -> Document:
    """The document of a new slot."""
    return {"_id": ObjectId(slot.id), **fields_of(slot), "bookings": [], "waiting": []}


def words(text: str) -> list[str]:
    """The words of a text as they are searched for: folded, each once."""
    return sorted(set(re.findall(r"\w+", text.casefold())))


def guard(before: Slot) -> Document:
    """Matches the slot only as it was looked at.

    The version is what makes overselling impossible, whatever became of the lock meanwhile.
    """
    return {"_id": ObjectId(before.id), "version": before.version}


def adds_only(before: Slot, after: Slot) -> bool:
    """Whether bookings are added and nothing else of the slot changes: the plain booking."""
    return (
        len(after.bookings) > len(before.bookings)
        and after.bookings[: len(before.bookings)] == before.bookings
        and not after.ended
        and after.waiting == before.waiting
        and _edited(before, after) == {}
    )


def update_of(before: Slot, after: Slot) -> Document | list[Document]:
    """The change alone: what it costs to send does not grow with the roster."""
    if adds_only(before, after):
        added = [entry_of(booking) for booking in after.bookings[len(before.bookings) :]]
        update: Document = {
            "$set": {"version": after.version, "changedAt": after.changed_at},
            "$inc": {"remaining": before.taken - after.taken},
            "$push": {"bookings": {"$each": added}},
        }
        if after.due is not None:
            update["$min"] = {"due": after.due}
        return update
    # An array cannot be pulled from and pushed to in one plain update; a pipeline can do both.
    return [{"$set": _pipeline_set(before, after)}]


def _pipeline_set(before: Slot, after: Slot) -> Document:
    changes: Document = {
        field: "$$REMOVE" if value is None and field in OPTIONAL else {"$literal": value}
        for field, value in _edited(before, after).items()
    }
    changes |= {"version": after.version, "changedAt": after.changed_at}
    # Relative, like every change of a count: an absolute one would undo what it did not see.
    places = (after.capacity - before.capacity) - (after.taken - before.taken)
    changes["remaining"] = {"$add": ["$remaining", places]}
    had = {booking.id: booking for booking in before.bookings}
    has = {booking.id: booking for booking in after.bookings}
    changes["bookings"] = _array(
        "$bookings",
        gone=[id_ for id_ in had if id_ not in has],
        changed=[entry_of(has[id_]) for id_ in had if id_ in has and has[id_] != had[id_]],
        added=[entry_of(booking) for id_, booking in has.items() if id_ not in had],
    )
    waited = {waiting.id for waiting in before.waiting}
    waits = {waiting.id for waiting in after.waiting}
    changes["waiting"] = _array(
        "$waiting",
        gone=waited - waits,
        changed=[],
        added=[_waiting_entry(waiting) for waiting in after.waiting if waiting.id not in waited],
    )
    changes["due"] = "$$REMOVE" if after.due is None else after.due
    return changes


def _edited(before: Slot, after: Slot) -> Document:
    was, is_ = fields_of(before), fields_of(after)
    names = [name for name in {**was, **is_} if name not in ("version", "changedAt", "remaining")]
    return {name: is_.get(name) for name in names if is_.get(name) != was.get(name)}


def _array(name: str, gone: Iterable[str], changed: list[Document], added: list[Document]) -> Any:
    array: Any = name
    if out := [ObjectId(id_) for id_ in gone]:
        array = {"$filter": {"input": array, "cond": {"$not": {"$in": ["$$this.id", out]}}}}
    if changed:
        branches = [
            {"case": {"$eq": ["$$this.id", entry["id"]]}, "then": {"$literal": entry}}
            for entry in changed
        ]
        switch = {"$switch": {"branches": branches, "default": "$$this"}}
        array = {"$map": {"input": array, "in": switch}}
    return {"$concatArrays": [array, {"$literal": added}]} if added else array


def _waiting_entry(waiting: Waiting) -> Document:
    user_id = ObjectId(waiting.user_id)
    entry: Document = {"id": ObjectId(waiting.id), "user": user_id, "at": waiting.since}
    return {**entry, "groups": list(waiting.groups)} if waiting.groups else entry


def _called_off_of(kept: Document | None) -> CalledOff | None:
    return CalledOff(kept["at"], UserId(str(kept["by"]))) if kept else None


def _called_off(called_off: CalledOff | None) -> Document | None:
    return {"at": called_off.at, "by": ObjectId(called_off.by)} if called_off else None
