"""Slots in MongoDB: looking at them; `writes` adds and changes them."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId
from pymongo.errors import OperationFailure

from slotlock.domain.bookings import BookingId, SlotId, WaitId
from slotlock.domain.listing import Page, Position, SlotFilter, SlotOrder
from slotlock.domain.people import UserId
from slotlock.domain.settling import next_in_line
from slotlock.domain.slots import SeriesId, Slot
from slotlock.stores import slot_documents as documents
from slotlock.stores import slot_queries
from slotlock.stores.audit import Audit
from slotlock.stores.batches import Batches
from slotlock.stores.calendar_slots import CalendarSlots
from slotlock.stores.ended_bookings import EndedBookings
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import LISTS_GATE, SLOTS_GATE, Database, Document, is_away
from slotlock.stores.people_at_hand import PeopleAtHand, beside
from slotlock.stores.slot_looks import seen_by


@dataclass(frozen=True, slots=True)
class Look:
    """Which slot is looked at, whose bookings in it, which besides, and how far down the line."""

    slot_id: SlotId
    now: datetime
    people: Sequence[UserId] = ()
    booking_ids: Sequence[BookingId] = ()
    heads: int = 1
    deciding: bool = False


class Slots:
    """The slots and their bookings."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(SLOTS_GATE)
        self.lists = Gate(LISTS_GATE)
        self._slots = database["slots"]
        self.past = EndedBookings(database, self.lists)
        self.calendars = CalendarSlots(database, self.lists)
        self.audit = Audit(database, self.lists)
        self._people = PeopleAtHand(database)
        self._looks = Batches(self._look_together)
        self._lines = Batches(self._read_lines)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        for name, (keys, options) in documents.INDEXES.items():
            await self._slots.create_index(keys, name=name, **options)
        await self.past.prepare()
        await self.audit.prepare()

    async def look(self, look: Look) -> Slot | None:
        """The slot as it is now; None when there is none.

        Looks of concurrent callers are one query, so that some of theirs may show too.
        """
        return await self._looks.do(look)

    async def look_to_decide(self, *looks: Look) -> list[Slot | None]:
        """The same with what a decision needs besides: these people's groups and other places.

        What is written on this look is guarded by its version and by theirs.
        """
        decide = (replace(look, deciding=True) for look in looks)
        slots = await asyncio.gather(*map(self._looks.do, decide))
        asking = [slot for slot in slots if slot and slot.judges]
        if not asking:
            return slots
        people: set[UserId] = set()
        for look, slot in zip(looks, slots, strict=True):
            if slot and slot.judges:
                people.update(look.people, _next(slot, look))
        known = await self._people.known(people, asking, max(look.now for look in looks))
        return [
            beside(slot, look.people, known) if slot and slot.judges else slot
            for look, slot in zip(looks, slots, strict=True)
        ]

    async def _look_together(self, looks: list[Look]) -> list[Slot | Exception | None]:
        wanted = {look.slot_id for look in looks}
        try:
            found = await self._find(wanted, looks)
        except OperationFailure as error:
            if is_away(error):
                raise
            # One that MongoDB cannot make sense of is its readers' alone.
            found = {slot_id: await self._find_one(slot_id, looks) for slot_id in wanted}
        return [found.get(look.slot_id) for look in looks]

    async def _find_one(self, slot_id: SlotId, looks: list[Look]) -> Slot | Exception | None:
        try:
            return (await self._find({slot_id}, looks)).get(slot_id)
        except OperationFailure as error:
            return error

    async def _find(
        self, slot_ids: set[SlotId], looks: list[Look]
    ) -> Mapping[SlotId, Slot | Exception | None]:
        projection = seen_by(
            {user_id for look in looks for user_id in look.people},
            {booking_id for look in looks for booking_id in look.booking_ids},
            max(look.now for look in looks),
            max(look.heads for look in looks),
            deciding=any(look.deciding for look in looks),
        )
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        found: dict[SlotId, Slot | Exception | None] = {}
        async for document in self._slots.find(query, projection):
            slot_id = SlotId(str(document["_id"]))
            try:
                found[slot_id] = documents.slot_of(document)
            except (KeyError, ValueError, TypeError) as error:  # its readers' alone, too
                found[slot_id] = error
        return found

    @listed
    async def look_at_roster(self, slot_id: SlotId) -> Slot | None:
        """The slot as it is now, with every live booking in the order they were made."""
        document = await self._slots.find_one({"_id": ObjectId(slot_id)})
        return documents.slot_of(document) if document else None

    async def line(self, slot_id: SlotId) -> Sequence[WaitId]:
        """The ids of all who wait, the first in front."""
        return await self._lines.do(slot_id)

    async def _read_lines(self, slot_ids: list[SlotId]) -> list[Sequence[WaitId]]:
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in set(slot_ids)]}}
        found = self._slots.find(query, {"waiting.id": 1})
        lines = {str(d["_id"]): [WaitId(str(e["id"])) for e in d["waiting"]] async for d in found}
        return [lines.get(slot_id, []) for slot_id in slot_ids]

    async def page(
        self,
        wanted: SlotFilter,
        order: SlotOrder,
        first: int,
        after: Position | None,
        now: datetime,
        people: Sequence[UserId] = (),
    ) -> Page[Slot]:
        """The next `first` of the slots that somebody looks for."""
        query = slot_queries.matching(wanted, now)
        return await self._page(query, order, first, after, now, people)

    async def page_of(
        self, user_id: UserId, first: int, after: Position | None, now: datetime
    ) -> Page[Slot]:
        """The next `first` slots in which a person has a live booking, by start."""
        query = {"bookings.user": ObjectId(user_id)}
        return await self._page(query, SlotOrder.START_ASC, first, after, now, [user_id])

    @listed
    async def _page(
        self,
        query: Document,
        order: SlotOrder,
        first: int,
        after: Position | None,
        now: datetime,
        people: Sequence[UserId],
    ) -> Page[Slot]:
        found = self._slots.find(
            slot_queries.after_position(query, after, order),
            seen_by(people, (), now, heads=1),
            sort=[("start", order.value), ("_id", order.value)],
            limit=first + 1,
        )
        slots = [documents.slot_of(document) async for document in found]
        return Page(tuple(slots[:first]), len(slots) > first)

    @gated
    async def of_people(
        self, user_ids: Sequence[UserId], since: datetime, now: datetime
    ) -> list[Slot]:
        """The slots that begin after `since` in which these people have live bookings."""
        query = _of_people(user_ids, since)
        found = self._slots.find(query, seen_by(user_ids, (), now, heads=1))
        return [documents.slot_of(document) async for document in found]

    @gated
    async def versions_of_people(
        self, user_ids: Sequence[UserId], since: datetime
    ) -> dict[SlotId, int]:
        """Only how new those slots are, which costs a fraction of reading them."""
        found = self._slots.find(_of_people(user_ids, since), {"version": 1})
        return {SlotId(str(document["_id"])): document["version"] async for document in found}

    @gated
    async def waited_for_by(self, user_ids: Sequence[UserId]) -> list[tuple[SlotId, UserId]]:
        """The turns that these people have in waiting lists."""
        users = {ObjectId(user_id) for user_id in user_ids}
        found = self._slots.find({"waiting.user": {"$in": list(users)}}, {"waiting.user": 1})
        return [
            (SlotId(str(document["_id"])), UserId(str(turn["user"])))
            async for document in found
            for turn in document["waiting"]
            if turn["user"] in users
        ]

    @gated
    async def of_series(self, series_id: SeriesId, now: datetime) -> list[Slot]:
        """The slots of a series, by start."""
        query, order = {"series": ObjectId(series_id)}, [("start", 1), ("_id", 1)]
        found = self._slots.find(query, seen_by((), (), now, heads=1), sort=order)
        return [documents.slot_of(document) async for document in found]

    @gated
    async def people_in(
        self, slot_ids: Sequence[SlotId], user_ids: Sequence[UserId]
    ) -> set[UserId]:
        """Those of the people who have a live booking in one of these slots."""
        users = [ObjectId(user_id) for user_id in user_ids]
        among = {"$setIntersection": ["$bookings.user", users]}
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        found = self._slots.find(query, {"people": among})
        return {UserId(str(user)) async for document in found for user in document["people"]}

    @gated
    async def due(self, now: datetime, most: int) -> list[SlotId]:
        """Up to so many slots in which a hold may have run out, the longest ago first."""
        found = self._slots.find({"due": {"$lte": now}}, {"_id": 1}, sort=[("due", 1)], limit=most)
        return [SlotId(str(document["_id"])) async for document in found]


def _next(slot: Slot, look: Look) -> Iterator[UserId]:
    """Whose booking it is about, and who may get a place that comes free."""
    yield from (booking.user_id for booking in slot.bookings if booking.id in look.booking_ids)
    yield from (waiting.user_id for waiting in next_in_line(slot, look.heads + len(slot.bookings)))


def _of_people(user_ids: Sequence[UserId], since: datetime) -> Document:
    users = [ObjectId(user_id) for user_id in user_ids]
    return {"bookings.user": {"$in": users}, "start": {"$gte": since}}
