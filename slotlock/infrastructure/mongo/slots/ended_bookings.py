"""Reads the bookings and waitlist entries that ended. Slots contain the live ones.

Each is a document of its own.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    EndedWaitlistEntry,
    SlotId,
    WaitlistEntryId,
)
from slotlock.domain.shared.pagination import MAX_COUNT, Page, Position, exact_count
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.commands import find_each
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.expressions import follows
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.slots.booking_documents import (
    to_ended_booking,
    to_ended_waitlist_entry,
)

ASCENDING, DESCENDING = 1, -1
PARTIAL_WAITLISTED_BY = {"partialFilterExpression": {"waitlistedBy": {"$exists": True}}}
ENDED_BOOKING_INDEXES = indexes_of(
    "ended_bookings",
    {
        "slot": ([("slot", 1), ("endedAt", 1), ("_id", 1)], {}),
        "user": ([("user", 1), ("endedAt", 1), ("_id", 1)], {}),
        "by": ([("history.by", 1), ("endedAt", 1)], {}),
        "waitlisted_by": ([("waitlistedBy", 1), ("endedAt", 1)], PARTIAL_WAITLISTED_BY),
    },
)


class EndedBookingRepository:
    """Finds bookings that no longer take a place."""

    def __init__(self, database: Database, list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._ended_bookings = database["ended_bookings"]
        self._ended_waitlist_entries = database["ended_waitlist_entries"]
        self._find_batcher = Batcher(self._find_batch, is_outage=is_unavailable)
        self._find_entry_batcher = Batcher(self._find_entry_batch, is_outage=is_unavailable)

    async def find(self, booking_id: BookingId) -> Booking | None:
        """Return an ended booking; None if no booking with this id ended."""
        return await self._find_batcher.submit(booking_id)

    async def _find_batch(self, booking_ids: list[BookingId]) -> list[Booking | None]:
        return await find_each(self._ended_bookings, booking_ids, to_ended_booking)

    async def find_waitlist_entry(self, entry_id: WaitlistEntryId) -> EndedWaitlistEntry | None:
        """Return a waitlist entry that ended without a booking; None if there is none."""
        return await self._find_entry_batcher.submit(entry_id)

    async def _find_entry_batch(
        self, entry_ids: list[WaitlistEntryId]
    ) -> list[EndedWaitlistEntry | None]:
        return await find_each(self._ended_waitlist_entries, entry_ids, to_ended_waitlist_entry)

    @limited_listing
    async def find_slots_with_history(self, slot_ids: Sequence[SlotId]) -> set[SlotId]:
        """Return those of the slots in which a booking or a waitlist entry has ended."""
        query = {"slot": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        booked = await self._ended_bookings.distinct("slot", query)
        waited_for = await self._ended_waitlist_entries.distinct("slot", query)
        return {SlotId(str(slot_id)) for slot_id in (*booked, *waited_for)}

    @limited_listing
    async def find_waits_ended(
        self, slot_ids: Sequence[SlotId], user_id: UserId
    ) -> dict[SlotId, datetime]:
        """Return when a user last stopped waiting for these slots without getting a place."""
        query = {
            "slot": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]},
            "user": ObjectId(user_id),
        }
        ends = dict[SlotId, datetime]()
        async for each in self._ended_waitlist_entries.find(query, ["slot", "at"]):
            slot_id = SlotId(str(each["slot"]))
            ends[slot_id] = max(each["at"], ends.get(slot_id, each["at"]))
        return ends

    async def page_of_slot(
        self, slot_id: SlotId, first: int, after: Position | None
    ) -> Page[Booking]:
        """Return the next ended bookings of a slot, in the order they ended."""
        return await self._page({"slot": ObjectId(slot_id)}, ASCENDING, first, after)

    async def page_of_user(
        self, user_id: UserId, first: int, after: Position | None
    ) -> Page[Booking]:
        """Return the next ended bookings of a user, the latest first."""
        return await self._page({"user": ObjectId(user_id)}, DESCENDING, first, after)

    async def count_of_slot(self, slot_id: SlotId) -> int | None:
        """Return the number of ended bookings of a slot; None for more than `MAX_COUNT`."""
        return await self._count({"slot": ObjectId(slot_id)})

    async def count_of_user(self, user_id: UserId) -> int | None:
        """Return the number of ended bookings of a user; None for more than `MAX_COUNT`."""
        return await self._count({"user": ObjectId(user_id)})

    @limited_listing
    async def _count(self, query: Document) -> int | None:
        return exact_count(await self._ended_bookings.count_documents(query, limit=MAX_COUNT + 1))

    @limited_listing
    async def _page(
        self, query: Document, order: int, first: int, after: Position | None
    ) -> Page[Booking]:
        if after is not None:
            query = {**query, "$and": follows("endedAt", after.start, after.id, order)}
        found = self._ended_bookings.find(
            query, sort=[("endedAt", order), ("_id", order)], limit=first + 1
        )
        ended = [to_ended_booking(document) async for document in found]
        return Page.of(ended, first)
