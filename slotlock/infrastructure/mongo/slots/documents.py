"""The shape of a slot's document and the change to it.

    {_id, title, start, end, timeZone, location, kind, status, capacity, remaining, version,
     changedAt, holdMinutes, cancelCutoffMinutes, waitlistCapacity, waitlistOfferMinutes,
     choiceGroup, searchWords: [str], cancellation: {at, by}, campaign?: terms, groupLimits?,
     meetings?: [{start, end}], resource, revision, revisedAt, series?, nextDeadline?,
     bookings: [booking], waitlist: [{id, user, since, groups?}]}

`bookings` contains the live bookings in the order they were made, and `waitlist` the entries in
the order they are served. What ends moves to a document of its own in the same transaction (see
booking_documents). `nextDeadline` is not later than the end of the next hold.
"""

from collections.abc import Iterable
from typing import Any

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.search_words import search_words
from slotlock.infrastructure.mongo.slots.booking_documents import booking_to_subdocument, to_booking
from slotlock.infrastructure.mongo.terms_documents import (
    group_limits_to_documents,
    terms_to_document,
    to_group_limits,
    to_terms,
)

# What a person reads of a slot: its name in the document and in the domain.
FIELD_NAMES = {
    "title": "title",
    "start": "start",
    "end": "end",
    "timeZone": "time_zone",
    "location": "location",
    "capacity": "capacity",
    "version": "version",
    "changedAt": "changed_at",
    "holdMinutes": "hold_minutes",
    "cancelCutoffMinutes": "cancel_cutoff_minutes",
    "waitlistCapacity": "waitlist_capacity",
    "waitlistOfferMinutes": "waitlist_offer_minutes",
    "choiceGroup": "choice_group",
    "resource": "resource",
    "revision": "revision",
    "revisedAt": "revised_at",
}
CONVERTED_FIELDS = (
    "kind",
    "status",
    "cancellation",
    "campaign",
    "groupLimits",
    "meetings",
    "series",
)
OPTIONAL_FIELDS = ("campaign", "groupLimits", "meetings", "series")
LOADED_FIELDS = (*FIELD_NAMES, *CONVERTED_FIELDS, "remaining")
PARTIAL_DUE = {"partialFilterExpression": {"nextDeadline": {"$exists": True}}}
# Not `$type`: MongoDB would not see that a choice which is asked for is a string.
PARTIAL_CHOICE = {"partialFilterExpression": {"choiceGroup": {"$gt": ""}}}
PARTIAL_RESOURCE = {"partialFilterExpression": {"resource": {"$gt": ""}}}
PARTIAL_CAMPAIGN = {"partialFilterExpression": {"campaign.id": {"$exists": True}}}
PARTIAL_SERIES = {"partialFilterExpression": {"series": {"$exists": True}}}
# A plain booking has no log, so that it costs what it did without this index.
PARTIAL_HISTORY = {"partialFilterExpression": {"bookings.history.by": {"$exists": True}}}
PARTIAL_CANCELLATION = {"partialFilterExpression": {"cancellation.by": {"$exists": True}}}
INDEXES: dict[str, tuple[list[tuple[str, int]], Document]] = {
    "list": ([("status", 1), ("start", 1), ("_id", 1)], {}),
    "kind": ([("status", 1), ("kind", 1), ("start", 1), ("_id", 1)], {}),
    "search_words": ([("status", 1), ("searchWords", 1)], {}),
    "booked_user": ([("bookings.user", 1), ("start", 1), ("_id", 1)], {}),
    "waitlist_user": ([("waitlist.user", 1)], {"sparse": True}),
    "end": ([("end", 1), ("_id", 1)], {}),
    "next_deadline": ([("nextDeadline", 1)], PARTIAL_DUE),
    "choice_group": ([("choiceGroup", 1), ("bookings.user", 1)], PARTIAL_CHOICE),
    "campaign": ([("campaign.id", 1), ("start", 1), ("_id", 1)], PARTIAL_CAMPAIGN),
    "resource": ([("resource", 1), ("start", 1)], PARTIAL_RESOURCE),
    "series": ([("series", 1), ("start", 1), ("_id", 1)], PARTIAL_SERIES),
    "history_by": ([("bookings.history.by", 1)], PARTIAL_HISTORY),
    "cancelled_by": ([("cancellation.by", 1)], PARTIAL_CANCELLATION),
}


def to_slot(document: Document) -> Slot:
    """The slot that a document describes."""
    slot_id = SlotId(str(document["_id"]))
    line, mine = document["waitlist"], document.get("ownWaitlistEntries", ())
    heads = [entry["id"] for entry in line]
    waiting = [*line, *(entry for entry in mine if entry["id"] not in heads)]
    return Slot(
        id=slot_id,
        **{name: document[field] for field, name in FIELD_NAMES.items() if field in document},
        booked_count=document["capacity"] - document["remaining"],
        kind=SlotKind(document["kind"]),
        status=SlotStatus(document["status"]),
        cancellation=_to_cancellation(document.get("cancellation")),
        terms=to_terms(document["campaign"]) if document.get("campaign") else None,
        group_limits=to_group_limits(document.get("groupLimits") or ()),
        meetings=tuple(Meeting(m["start"], m["end"]) for m in document.get("meetings") or ()),
        series_id=SeriesId(str(document["series"])) if document.get("series") else None,
        bookings=tuple(to_booking(slot_id, entry) for entry in document["bookings"]),
        waitlist=tuple(to_waitlist_entry(slot_id, entry) for entry in waiting),
        loaded_waitlist=len(heads),
        waitlist_length=document.get("waitlistLength", len(line)),
        group_counts={each["group"]: each["count"] for each in document.get("groupCounts", ())},
        next_deadline=document.get("nextDeadline"),
    )


def to_waitlist_entry(slot_id: SlotId, subdocument: Document) -> WaitlistEntry:
    """The turn that an entry of this slot's line describes."""
    wait_id, user_id = WaitlistEntryId(str(subdocument["id"])), UserId(str(subdocument["user"]))
    return WaitlistEntry(
        wait_id, slot_id, user_id, subdocument["since"], tuple(subdocument.get("groups", ()))
    )


def to_fields(slot: Slot) -> Document:
    """Everything of a slot but its bookings and its waiting list."""
    fields = {
        **{field: getattr(slot, name) for field, name in FIELD_NAMES.items()},
        "kind": slot.kind.value,
        "status": slot.status.value,
        "cancellation": _cancellation_to_subdocument(slot.cancellation),
        "remaining": slot.remaining,
        "searchWords": search_words(f"{slot.title} {slot.location or ''}"),
    }
    if slot.terms is not None:
        fields["campaign"] = terms_to_document(slot.terms)
    if slot.group_limits:
        fields["groupLimits"] = group_limits_to_documents(slot.group_limits)
    if slot.meetings:
        fields["meetings"] = [{"start": m.start, "end": m.end} for m in slot.meetings]
    if slot.series_id is not None:
        fields["series"] = ObjectId(slot.series_id)
    return fields


def to_document(slot: Slot) -> Document:
    """The document of a new slot."""
    return {"_id": ObjectId(slot.id), **to_fields(slot), "bookings": [], "waitlist": []}


def version_filter(before: Slot) -> Document:
    """Matches the slot only as it was looked at.

    The version is what makes overselling impossible, whatever became of the lock meanwhile.
    """
    return {"_id": ObjectId(before.id), "version": before.version}


def to_update(before: Slot, after: Slot) -> Document | list[Document]:
    """Return the update that writes what changed: its size does not grow with the roster."""
    if after.change.only_adds_bookings:
        added = [booking_to_subdocument(booking) for booking in after.change.added]
        update: Document = {
            "$set": {"version": after.version, "changedAt": after.changed_at},
            "$inc": {"remaining": before.booked_count - after.booked_count},
            "$push": {"bookings": {"$each": added}},
        }
        if after.next_deadline is not None:
            update["$min"] = {"nextDeadline": after.next_deadline}
        return update
    # A plain update cannot remove from an array and add to it at once; a pipeline can.
    return [{"$set": _update_stage(before, after)}]


def _update_stage(before: Slot, after: Slot) -> Document:
    change = after.change
    fields: Document = {
        field: "$$REMOVE" if value is None and field in OPTIONAL_FIELDS else {"$literal": value}
        for field, value in (_changed_fields(before, after) if change.is_edited else {}).items()
    }
    fields |= {"version": after.version, "changedAt": after.changed_at}
    # Relative, like every change of a count: the absolute count would undo concurrent changes.
    places = (after.capacity - before.capacity) - (after.booked_count - before.booked_count)
    fields["remaining"] = {"$add": ["$remaining", places]}
    fields["bookings"] = _array_expression(
        "$bookings",
        removed_ids=[booking.id for booking in change.ended],
        changed=[booking_to_subdocument(booking) for booking in change.changed],
        added=[booking_to_subdocument(booking) for booking in change.added],
    )
    fields["waitlist"] = _array_expression(
        "$waitlist",
        removed_ids=change.removed_entries,
        changed=[],
        added=[_waitlist_entry_to_subdocument(entry) for entry in change.joined],
    )
    fields["nextDeadline"] = "$$REMOVE" if after.next_deadline is None else after.next_deadline
    return fields


def _changed_fields(before: Slot, after: Slot) -> Document:
    was, is_ = to_fields(before), to_fields(after)
    names = [name for name in {**was, **is_} if name not in ("version", "changedAt", "remaining")]
    return {name: is_.get(name) for name in names if is_.get(name) != was.get(name)}


def _array_expression(
    name: str, removed_ids: Iterable[str], changed: list[Document], added: list[Document]
) -> Any:
    array: Any = name
    if out := [ObjectId(id_) for id_ in removed_ids]:
        array = {"$filter": {"input": array, "cond": {"$not": {"$in": ["$$this.id", out]}}}}
    if changed:
        branches = [
            {"case": {"$eq": ["$$this.id", entry["id"]]}, "then": {"$literal": entry}}
            for entry in changed
        ]
        switch = {"$switch": {"branches": branches, "default": "$$this"}}
        array = {"$map": {"input": array, "in": switch}}
    return {"$concatArrays": [array, {"$literal": added}]} if added else array


def _waitlist_entry_to_subdocument(waitlist_entry: WaitlistEntry) -> Document:
    user_id = ObjectId(waitlist_entry.user_id)
    entry: Document = {
        "id": ObjectId(waitlist_entry.id),
        "user": user_id,
        "since": waitlist_entry.since,
    }
    return {**entry, "groups": list(waitlist_entry.groups)} if waitlist_entry.groups else entry


def _to_cancellation(subdocument: Document | None) -> SlotCancellation | None:
    return (
        SlotCancellation(subdocument["at"], UserId(str(subdocument["by"]))) if subdocument else None
    )


def _cancellation_to_subdocument(cancellation: SlotCancellation | None) -> Document | None:
    return {"at": cancellation.at, "by": ObjectId(cancellation.by)} if cancellation else None
