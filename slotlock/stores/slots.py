"""Slots in MongoDB: looking at them, and writing what was decided, guarded by version."""

from collections.abc import Iterable, Sequence
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError, WriteError

from slotlock.domain.booking import Decision
from slotlock.domain.listing import Page, Position, SlotFilter, SlotOrder
from slotlock.domain.people import UserId
from slotlock.domain.slots import Availability, Booking, BookingId, Slot, SlotId, availability
from slotlock.stores import slot_documents as documents
from slotlock.stores.batches import Batches
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, SLOTS_GATE, Database, Document


def new_slot_id() -> SlotId:
    """An id that no slot has."""
    return SlotId(str(ObjectId()))


def new_booking_id() -> BookingId:
    """An id that no booking has."""
    return BookingId(str(ObjectId()))


# Which slot, whose bookings in it, and which bookings besides.
Look = tuple[SlotId, tuple[UserId, ...], tuple[BookingId, ...]]
# A slot as it was looked at, and bookings to be added to it.
Addition = tuple[Slot, Decision[Any]]
LARGEST_WRITE = 64


class Slots:
    """The slots and their bookings."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(SLOTS_GATE)
        self._client = database.client
        self._slots = database["slots"]
        self._ended = database["endedBookings"]
        self._looks = Batches(self._look_together)
        self._past = Batches(self._read_ended)
        self._additions = Batches(self._add_together, LARGEST_WRITE)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        for name, keys in documents.INDEXES.items():
            await self._slots.create_index(keys, name=name)

    @gated
    async def add(self, slot: Slot) -> None:
        """Keep a new slot."""
        fields = documents.fields_of(slot)
        await self._slots.insert_one({"_id": ObjectId(slot.id), **fields, "bookings": []})

    async def look(
        self,
        slot_id: SlotId,
        people: Iterable[UserId] = (),
        booking_ids: Iterable[BookingId] = (),
    ) -> Slot | None:
        """The slot as it is now, with these live bookings and those of these people.

        Looks of concurrent callers are one query, so that some of theirs may show too.
        """
        return await self._looks.do((slot_id, tuple(people), tuple(booking_ids)))

    async def _look_together(self, looks: list[Look]) -> list[Slot | None]:
        people = {user_id for _, asked, _ in looks for user_id in asked}
        booking_ids = {booking_id for *_, asked in looks for booking_id in asked}
        found = await self._read({look[0] for look in looks}, people, booking_ids)
        return [found.get(look[0]) for look in looks]

    async def _read(
        self,
        slot_ids: Iterable[SlotId],
        people: Iterable[UserId] = (),
        booking_ids: Iterable[BookingId] = (),
    ) -> dict[SlotId, Slot]:
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        found = self._slots.find(query, documents.seen_by(people, booking_ids))
        return {slot.id: slot async for slot in (documents.slot_of(d) async for d in found)}

    @gated
    async def look_at_roster(self, slot_id: SlotId) -> Slot | None:
        """The slot as it is now, with every live booking in the order they were made."""
        document = await self._slots.find_one({"_id": ObjectId(slot_id)})
        return documents.slot_of(document) if document else None

    @gated
    async def availability(self, slot_ids: Iterable[SlotId]) -> list[Availability]:
        """The public state of those of the slots that exist."""
        return [availability(slot) for slot in (await self._read(slot_ids)).values()]

    async def page(
        self,
        wanted: SlotFilter,
        order: SlotOrder,
        first: int,
        after: Position | None,
        people: Sequence[UserId] = (),
    ) -> Page[Slot]:
        """The next `first` of the slots that somebody looks for."""
        return await self._page(documents.matching(wanted), order, first, after, people)

    async def page_of(self, user_id: UserId, first: int, after: Position | None) -> Page[Slot]:
        """The next `first` slots in which a person has a live booking, by start."""
        query = {"bookings.user": ObjectId(user_id)}
        return await self._page(query, SlotOrder.START_ASC, first, after, [user_id])

    @gated
    async def _page(
        self,
        query: Document,
        order: SlotOrder,
        first: int,
        after: Position | None,
        people: Sequence[UserId],
    ) -> Page[Slot]:
        found = self._slots.find(
            documents.after_position(query, after, order),
            documents.seen_by(people),
            sort=[("start", order.value), ("_id", order.value)],
            limit=first + 1,
        )
        slots = [documents.slot_of(document) async for document in found]
        return Page(tuple(slots[:first]), len(slots) > first)

    async def commit(self, before: Slot, decision: Decision[Any]) -> bool:
        """Write a decision if the slot is still the version it was decided on.

        False, and nothing written, when somebody else wrote first: look again, decide again.
        """
        if decision.removed:
            return await self._exchange(before, decision)
        return await self._additions.do((before, decision))

    @gated
    async def _exchange(self, before: Slot, decision: Decision[Any]) -> bool:
        """Write a decision that ends bookings: they move in the same transaction."""

        async def both(session: AsyncClientSession) -> bool:
            update = documents.update_of(before, decision)
            written = await self._slots.update_one(documents.guard(before), update, session=session)
            if written.modified_count:
                ended = [documents.ended_document(booking) for booking in decision.removed]
                await self._ended.insert_many(ended, session=session)
            return written.modified_count == 1

        # Without a limit of its own with_transaction goes on for two minutes.
        with timeout(OPERATION_TIMEOUT_MS / 1000):
            async with self._client.start_session() as session:
                return await session.with_transaction(both)

    async def _add_together(self, wanted: list[Addition]) -> list[bool | Exception]:
        """Write the new bookings of concurrent acts, each guarded by itself; which were written."""
        updates = [
            UpdateOne(documents.guard(before), documents.update_of(before, decision))
            for before, decision in wanted
        ]
        failed: dict[int, Exception] = {}
        try:
            result = await self._slots.bulk_write(updates, ordered=False)
            if result.modified_count == len(wanted):
                return [True] * len(wanted)
        except BulkWriteError as error:
            if error.details["writeConcernErrors"]:
                raise
            # One statement's error is one caller's, not its neighbours'.
            for each in error.details["writeErrors"]:
                failed[each["index"]] = WriteError(each["errmsg"], each["code"])
        made = await self._made(wanted)
        return [
            failed.get(index) or all(booking.id in made for booking in decision.added)
            for index, (_, decision) in enumerate(wanted)
        ]

    async def _made(self, wanted: list[Addition]) -> set[BookingId]:
        """Those of the bookings that were written: a bulk tells how many, and not which."""
        ids = [ObjectId(booking.id) for _, decision in wanted for booking in decision.added]
        query = {"_id": {"$in": [ObjectId(before.id) for before, _ in wanted]}}
        found = self._slots.find(query, documents.seen_among(ids))
        live = {entry["id"] async for document in found for entry in document["bookings"]}
        # Somebody may have cancelled one since.
        ended = self._ended.find(
            {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}, {"_id": 1}
        )
        return {BookingId(str(id_)) for id_ in live | {document["_id"] async for document in ended}}

    @gated
    async def replace(self, before: Slot, after: Slot) -> bool:
        """Write an organiser's changes, guarded by version like every other write."""
        update = {"$set": documents.fields_of(after)}
        written = await self._slots.update_one(documents.guard(before), update)
        return written.modified_count == 1

    async def ended(self, booking_id: BookingId) -> Booking | None:
        """A booking that was cancelled."""
        return await self._past.do(booking_id)

    async def _read_ended(self, booking_ids: list[BookingId]) -> list[Booking | None]:
        query = {"_id": {"$in": [ObjectId(booking_id) for booking_id in set(booking_ids)]}}
        bookings = [documents.ended_booking(document) async for document in self._ended.find(query)]
        found = {booking.id: booking for booking in bookings}
        return [found.get(booking_id) for booking_id in booking_ids]
