"""Reads of slots for decisions: those with few bookings whole, and the others by a projection.

The projection for decisions costs MongoDB 14 us for a slot and 150 us for a command more than a
read of whole documents. Its expressions are the same for a slot without any booking. This module
evaluates them for documents that were read whole.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import Document, is_unavailable
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.document_parts import require_known_version
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_query import MAX_WAITLIST_LENGTH, SlotParts

# A slot with more bookings or more waitlist entries is not read whole.
MAX_ROWS = 8
IS_SMALL: Document = {f"{rows}.{MAX_ROWS}": {"$exists": False} for rows in ("bookings", "waitlist")}
WHOLE: Document = {}
MAX_REMEMBERED_SLOTS = 10_000

Slots = AsyncCollection[Document]
Loaded = TypeVar("Loaded")


class DecisionReader:
    """Reads slots for decisions, and remembers those with many bookings."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        # It saves a command if it is right, and costs one if it is not.
        self._large = set[SlotId]()

    async def read_each(
        self, slot_ids: Collection[SlotId], parts: SlotParts
    ) -> Mapping[SlotId, SlotState | Exception]:
        """Return these parts of the slots. A slot that cannot be read is its error.

        So is one that a newer version stored in another shape, if it is read for an update.
        """

        def convert(document: Document) -> SlotState:
            if parts.for_update:
                require_known_version("slots", document)
            return to_slot_state(document)

        def convert_whole(document: Document) -> SlotState:
            if parts.for_update:
                require_known_version("slots", document)
            return to_slot_state(project(document, parts))

        found: dict[SlotId, SlotState | Exception] = {}
        if small := [slot_id for slot_id in slot_ids if slot_id not in self._large]:
            found |= await read_each(self._slots, small, WHOLE, convert_whole, IS_SMALL)
        if others := [slot_id for slot_id in slot_ids if slot_id not in found]:
            found |= await read_each(self._slots, others, parts.to_projection(), convert)
            for slot_id in others:
                self._remember(found.get(slot_id))
        return found

    def _remember(self, slot: SlotState | Exception | None) -> None:
        if isinstance(slot, SlotState):
            if slot.booked_count <= MAX_ROWS and slot.waitlist_length <= MAX_ROWS:
                self._large.discard(slot.id)
                return
            if len(self._large) == MAX_REMEMBERED_SLOTS:
                self._large.clear()
            self._large.add(slot.id)


def project(document: Document, parts: SlotParts) -> Document:
    """Return the document as the projection to these parts would have returned it."""
    bookings, waitlist, now = document["bookings"], document["waitlist"], parts.now
    if not bookings and not waitlist:
        return {**document, "nextDeadline": None}
    deadlines = [each["heldUntil"] for each in bookings if each.get("heldUntil") is not None]
    expired_count = sum(held_until <= now for held_until in deadlines)
    return {
        **document,
        "bookings": bookings if document["capacity"] == 1 else _loaded_bookings(bookings, parts),
        "waitlist": waitlist[: _waitlist_depth(document, parts, expired_count)],
        "ownWaitlistEntries": [each for each in waitlist if str(each["user"]) in parts.user_ids],
        "waitlistLength": len(waitlist),
        "groupCounts": _group_counts(bookings) if _has_group_limits(document) else [],
        "nextDeadline": min((each for each in deadlines if each > now), default=None),
    }


def _loaded_bookings(bookings: Sequence[Document], parts: SlotParts) -> list[Document]:
    return [
        each
        for each in bookings
        if str(each["user"]) in parts.user_ids
        or str(each["id"]) in parts.booking_ids
        or _is_expired(each, parts.now)
    ]


def _is_expired(booking: Document, now: datetime) -> bool:
    held_until = booking.get("heldUntil")
    return held_until is not None and held_until <= now


def _waitlist_depth(document: Document, parts: SlotParts, expired_count: int) -> int:
    may_promote = parts.for_update or document["remaining"] + expired_count > 0
    if may_promote and _has_group_limits(document):
        return MAX_WAITLIST_LENGTH
    return expired_count + parts.waitlist_depth


def _has_group_limits(document: Document) -> bool:
    terms = document.get("campaign") or {}
    return bool(document.get("groupLimits") or terms.get("groupLimits"))


def _group_counts(bookings: Sequence[Document]) -> list[Document]:
    counts = Counter(group for each in bookings for group in set(each.get("groups", ())))
    return [{"group": group, "count": count} for group, count in counts.items()]


async def read_each(
    slots: Slots,
    slot_ids: Collection[SlotId],
    projection: Document,
    convert: Callable[[Document], Loaded],
    condition: Document | None = None,
) -> Mapping[SlotId, Loaded | Exception]:
    """Read slots with one command. One that cannot be read is its error."""
    conditions = condition or {}
    try:
        return await _read_slots(slots, slot_ids, projection, convert, conditions)
    except OperationFailure as error:
        if is_unavailable(error):
            raise
    found: dict[SlotId, Loaded | Exception] = {}
    for slot_id in slot_ids:
        try:
            found |= await _read_slots(slots, [slot_id], projection, convert, conditions)
        except OperationFailure as error:  # MongoDB cannot evaluate this slot
            found[slot_id] = error
    return found


async def _read_slots(
    slots: Slots,
    slot_ids: Collection[SlotId],
    projection: Document,
    convert: Callable[[Document], Loaded],
    conditions: Document,
) -> dict[SlotId, Loaded | Exception]:
    query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}, **conditions}
    found: dict[SlotId, Loaded | Exception] = {}
    for document in await find_in_one_batch(slots, query, projection, len(slot_ids)):
        slot_id = SlotId(str(document["_id"]))
        try:
            found[slot_id] = convert(document)
        except (KeyError, ValueError, TypeError) as error:  # concerns its own callers only
            found[slot_id] = error
    return found
