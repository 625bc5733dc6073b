"""The updates of a slot's document, which write what a decision changed in the version it read."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from slotlock.domain.booking.booking import WaitlistEntry
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.document_parts import unknown_fields
from slotlock.infrastructure.mongo.slots.booking_documents import (
    WAITLIST_ENTRY_FIELDS,
    booking_to_subdocument,
    waitlisted_by_field,
)
from slotlock.infrastructure.mongo.slots.slot_documents import list_fields, to_fields

# Of a slot whose holds are abandoned more often than this, the oldest are forgotten first.
MAX_ENDED_HOLDS = 1000
_REMOVED = object()


def version_filter(before: SlotState) -> Document:
    """Return the filter for a slot in the version that was loaded.

    This condition makes overselling impossible, whatever happened to the lock in the meantime.
    """
    return {"_id": ObjectId(before.id), "version": before.version}


def to_update(before: SlotState, after: SlotState) -> Document | list[Document]:
    """Return the update that writes what changed: its size does not grow with the roster."""
    if after.change.only_adds_bookings:
        return to_addition(before, after)
    # A plain update cannot remove from an array and add to it at once; a pipeline can.
    return [{"$set": _update_stage(before, after)}]


def to_addition(before: SlotState, after: SlotState) -> Document:
    """Return the update that adds bookings, where nothing else changed."""
    added = list(map(booking_to_subdocument, after.change.added))
    update: Document = {
        "$set": {"version": after.version, "changedAt": after.changed_at},
        "$inc": {"remaining": before.booked_count - after.booked_count},
        "$push": {"bookings": {"$each": added}},
    }
    if after.next_deadline is not None:
        update["$min"] = {"nextDeadline": after.next_deadline}
    return update


def _update_stage(before: SlotState, after: SlotState) -> Document:
    change = after.change
    edited = _edited_fields(before.slot, after) if change.is_edited else {}
    fields: Document = {
        stored_name: "$$REMOVE" if value is _REMOVED else {"$literal": value}
        for stored_name, value in edited.items()
    }
    fields |= {"version": after.version, "changedAt": after.changed_at}
    # Relative, like every change of a count: the absolute count would undo concurrent changes.
    fields["remaining"] = {"$add": ["$remaining", after.remaining - before.remaining]}
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
    if before.slot.hold_cooldown_minutes or after.slot.hold_cooldown_minutes:
        fields |= _ended_holds_stage(before, after)
    return fields


def _ended_holds_stage(before: SlotState, after: SlotState) -> Document:
    """Return the update that adds ended holds, and removes those whose cooldown is over."""
    if not after.slot.hold_cooldown_minutes:
        return {"endedHolds": "$$REMOVE"}
    known = before.ended_holds
    added = [
        {"user": ObjectId(user_id), "at": at}
        for user_id, at in after.ended_holds.items()
        if known.get(user_id) != at
    ]
    if not added:
        return {}
    is_current = {
        "$and": [
            {"$gt": ["$$this.at", _cooldown_start(after)]},
            {"$not": {"$in": ["$$this.user", [each["user"] for each in added]]}},
        ]
    }
    stored = {"$ifNull": ["$endedHolds", []]}
    current = {"$filter": {"input": stored, "cond": is_current}}
    everything = {"$concatArrays": [current, {"$literal": added}]}
    return {"endedHolds": {"$slice": [everything, -MAX_ENDED_HOLDS]}}


def _cooldown_start(slot: SlotState) -> datetime:
    """Return before when holds ended whose cooldown was over at the last change."""
    return slot.changed_at - timedelta(minutes=slot.slot.hold_cooldown_minutes)


def _edited_fields(before: Slot, after: SlotState) -> Document:
    old, new, description = to_fields(before), to_fields(after.slot), after.change.description
    changed = {
        stored_name: new.get(stored_name, _REMOVED)
        for stored_name in {**old, **new}
        if old.get(stored_name, _REMOVED) != new.get(stored_name, _REMOVED)
    }
    if description is not UNCHANGED:
        changed["description"] = _REMOVED if description is None else description
    # All of them: the mark of the words tells the age of the others, too.
    return {**changed, **list_fields(new)}


def _array_expression(
    name: str, removed_ids: Iterable[str], changed: list[Document], added: list[Document]
) -> Any:
    array: Any = name
    if ids := [ObjectId(id_) for id_ in removed_ids]:
        array = {"$filter": {"input": array, "cond": {"$not": {"$in": ["$$this.id", ids]}}}}
    if changed:
        branches = [
            {"case": {"$eq": ["$$this.id", entry["id"]]}, "then": {"$literal": entry}}
            for entry in changed
        ]
        switch = {"$switch": {"branches": branches, "default": "$$this"}}
        array = {"$map": {"input": array, "in": switch}}
    return {"$concatArrays": [array, {"$literal": added}]} if added else array


def _waitlist_entry_to_subdocument(entry: WaitlistEntry) -> Document:
    subdocument: Document = {
        **unknown_fields(entry.stored, WAITLIST_ENTRY_FIELDS),
        "id": ObjectId(entry.id),
        "user": ObjectId(entry.user_id),
        "since": entry.since,
        **waitlisted_by_field(entry.waitlisted_by),
    }
    return {**subdocument, "groups": list(entry.groups)} if entry.groups else subdocument
