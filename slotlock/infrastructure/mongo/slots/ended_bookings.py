"""Reads the bookings that ended. Each is a document of its own; slots contain the live ones."""

from collections.abc import Sequence

from bson import ObjectId

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.slots.booking_documents import to_ended_booking

ASCENDING, DESCENDING = 1, -1
ENDED_BOOKING_INDEXES = indexes_of(
    "ended_bookings",
    {
        "slot": ([("slot", 1), ("endedAt", 1), ("_id", 1)], {}),
        "user": ([("user", 1), ("endedAt", 1), ("_id", 1)], {}),
        "by": ([("history.by", 1), ("endedAt", 1)], {}),
    },
)


class EndedBookingRepository:
    """Finds bookings that no longer take a place."""

    def __init__(self, database: Database, list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._ended_bookings = database["ended_bookings"]
        self._ended_waitlist_entries = database["ended_waitlist_entries"]
        self._find_batcher = Batcher(self._find_batch, is_outage=is_unavailable)

    async def find(self, booking_id: BookingId) -> Booking | None:
        """Return an ended booking; None if no booking with this id ended."""
        return await self._find_batcher.submit(booking_id)

    async def _find_batch(self, booking_ids: list[BookingId]) -> list[Booking | None]:
        query = {"_id": {"$in": [ObjectId(booking_id) for booking_id in set(booking_ids)]}}
        documents = self._ended_bookings.find(query)
        bookings = [to_ended_booking(document) async for document in documents]
        found = {booking.id: booking for booking in bookings}
        return [found.get(booking_id) for booking_id in booking_ids]

    @limited_listing
    async def find_slots_with_history(self, slot_ids: Sequence[SlotId]) -> set[SlotId]:
        """Return those of the slots in which a booking or a waitlist entry has ended."""
        query = {"slot": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        booked = await self._ended_bookings.distinct("slot", query)
        waited_for = await self._ended_waitlist_entries.distinct("slot", query)
        return {SlotId(str(slot_id)) for slot_id in (*booked, *waited_for)}

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

    @limited_listing
    async def _page(
        self, query: Document, order: int, first: int, after: Position | None
    ) -> Page[Booking]:
        if after is not None:
            beyond = "$gt" if order == ASCENDING else "$lt"
            same_time = {"endedAt": after.start, "_id": {beyond: ObjectId(after.id)}}
            query = {**query, "$or": [{"endedAt": {beyond: after.start}}, same_time]}
        found = self._ended_bookings.find(
            query, sort=[("endedAt", order), ("_id", order)], limit=first + 1
        )
        ended = [to_ended_booking(document) async for document in found]
        return Page(tuple(ended[:first]), len(ended) > first)
