"""The bookings that ended, each a document of its own: the slots hold the live ones."""

from bson import ObjectId

from slotlock.domain.bookings import Booking, BookingId, SlotId
from slotlock.domain.listing import Page, Position
from slotlock.domain.people import UserId
from slotlock.stores.batches import Batches
from slotlock.stores.booking_documents import ended_booking
from slotlock.stores.gate import Gate, listed
from slotlock.stores.mongo import Database, Document

ASCENDING, DESCENDING = 1, -1


class EndedBookings:
    """What became of bookings that no longer take a place."""

    def __init__(self, database: Database, lists: Gate) -> None:
        self.lists = lists
        self._ended = database["endedBookings"]
        self._finds = Batches(self._find_together)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        await self._ended.create_index([("slot", 1), ("endedAt", 1), ("_id", 1)], name="slot")
        await self._ended.create_index([("user", 1), ("endedAt", 1), ("_id", 1)], name="person")

    async def find(self, booking_id: BookingId) -> Booking | None:
        """A booking that ended; None when none did."""
        return await self._finds.do(booking_id)

    async def _find_together(self, booking_ids: list[BookingId]) -> list[Booking | None]:
        query = {"_id": {"$in": [ObjectId(booking_id) for booking_id in set(booking_ids)]}}
        ended = [ended_booking(document) async for document in self._ended.find(query)]
        found = {booking.id: booking for booking in ended}
        return [found.get(booking_id) for booking_id in booking_ids]

    async def of_slot(self, slot_id: SlotId, first: int, after: Position | None) -> Page[Booking]:
        """The next ended bookings of a slot, in the order they ended."""
        return await self._page({"slot": ObjectId(slot_id)}, ASCENDING, first, after)

    async def of_person(self, user_id: UserId, first: int, after: Position | None) -> Page[Booking]:
        """The next ended bookings of a person, the latest first."""
        return await self._page({"user": ObjectId(user_id)}, DESCENDING, first, after)

    @listed
    async def _page(
        self, query: Document, order: int, first: int, after: Position | None
    ) -> Page[Booking]:
        if after is not None:
            past = "$gt" if order == ASCENDING else "$lt"
            here = {"endedAt": after.start, "_id": {past: ObjectId(after.id)}}
            query = {**query, "$or": [{"endedAt": {past: after.start}}, here]}
        found = self._ended.find(query, sort=[("endedAt", order), ("_id", order)], limit=first + 1)
        ended = [ended_booking(document) async for document in found]
        return Page(tuple(ended[:first]), len(ended) > first)
