"""The slots of a target, freed before each run and counted after it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from bson import ObjectId
from pymongo import MongoClient, WriteConcern
from pymongo.collection import Collection

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.indexes.time_spans import spans_of
from slotlock.infrastructure.mongo.slots import slot_documents

Document = dict[str, Any]

SLOTS_PER_DAY = 200
ROOMS = 50
BATCH_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Slots with consecutive numbers, and the places in each."""

    first: int
    count: int
    capacity: int = 1

    @property
    def numbers(self) -> range:
        """The numbers of the slots, which are also their ids."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """The documents of a target.

    `document` takes the number of the slot, the first day and the number of places.
    `booked` and `wrong` are filters; `free` is the update of a booked slot.
    `booking_count` is the expression for the bookings of a booked slot.
    """

    document: Callable[[int, datetime, int], Document]
    free: Document | list[Document]
    booked: Document
    booking_count: Document | int
    wrong: Document
    indexes: Mapping[str, tuple[Sequence[tuple[str, int]], Document]]


@dataclass(frozen=True, slots=True)
class Tally:
    """The bookings and the slots that have some, and the slots whose fields contradict them."""

    booked: int
    booked_slots: int
    wrong: int


class TargetSlots:
    """The slots of one database."""

    def __init__(
        self,
        client: MongoClient[Document],
        database_name: str,
        shape: DocumentShape,
        first_day: datetime,
    ) -> None:
        concern = WriteConcern("majority")
        self._slots: Collection[Document] = client[database_name].get_collection(
            "slots", write_concern=concern
        )
        self._shape = shape
        self._first_day = first_day

    def seed(self, slots: SlotRange) -> None:
        """Insert these slots and create the indexes."""
        numbers = slots.numbers
        for start in range(0, len(numbers), BATCH_SIZE):
            self._slots.insert_many(
                [
                    self._shape.document(number, self._first_day, slots.capacity)
                    for number in numbers[start : start + BATCH_SIZE]
                ],
                ordered=False,
            )
        for name, (keys, options) in self._shape.indexes.items():
            self._slots.create_index(keys, name=name, **options)

    def free_all(self) -> None:
        """Free the booked slots, which takes a tenth of the time of inserting all again."""
        self._slots.update_many(self._shape.booked, self._shape.free)

    def tally(self) -> Tally:
        """Count the bookings and the wrong slots in MongoDB."""
        total = {"$sum": self._shape.booking_count}
        groups = self._slots.aggregate(
            [
                {"$match": self._shape.booked},
                {"$group": {"_id": None, "bookings": total, "slots": {"$sum": 1}}},
            ]
        )
        group = next(iter(groups), {"bookings": 0, "slots": 0})
        wrong = self._slots.count_documents(self._shape.wrong)
        return Tally(group["bookings"], group["slots"], wrong)


def peer_document(number: int, first_day: datetime, _capacity: int = 1) -> Document:
    """Return the document of a peer's slot, which has one place."""
    start = _start(number, first_day)
    return {
        "_id": ObjectId(f"{number:024x}"),
        "day": number // SLOTS_PER_DAY,
        "venue": _room(number),
        "startTime": start,
        "endTime": start + timedelta(minutes=30),
        "isBooked": False,
        "bookedBy": None,
    }


def slotlock_document(number: int, first_day: datetime, capacity: int = 1) -> Document:
    """Return the document of a slot of slotlock."""
    start = _start(number, first_day)
    end = start + timedelta(minutes=30)
    return {
        **_slotlock_template(number % SLOTS_PER_DAY, first_day, capacity),
        "_id": ObjectId(f"{number:024x}"),
        "start": start,
        "end": end,
        "spans": spans_of(start, end),
    }


@cache
def _slotlock_template(number: int, first_day: datetime, capacity: int) -> Document:
    """Return the document of a slot of the first day; other days have the same slots."""
    start = _start(number, first_day)
    slot = Slot(
        id=SlotId(f"{number:024x}"),
        title=f"Slot {number}",
        start=start,
        end=start + timedelta(minutes=30),
        time_zone="UTC",
        capacity=capacity,
        location=_room(number),
        kind=SlotKind.MEETING,
        status=SlotStatus.PUBLISHED,
    )
    return slot_documents.to_document(SlotState(slot, version=1, changed_at=first_day))


def _start(number: int, first_day: datetime) -> datetime:
    return first_day + timedelta(days=number // SLOTS_PER_DAY, minutes=number % SLOTS_PER_DAY * 5)


def _room(number: int) -> str:
    return f"Room {number % ROOMS}"


PEER_SHAPE = DocumentShape(
    document=peer_document,
    free={"$set": {"isBooked": False, "bookedBy": None}, "$unset": {"claim": ""}},
    booked={"isBooked": True},
    booking_count=1,
    wrong={
        "$or": [
            {"isBooked": True, "bookedBy": None},
            {"isBooked": False, "bookedBy": {"$ne": None}},
        ]
    },
    indexes={"open": ([("day", 1), ("startTime", 1)], {})},
)

_BOOKING_COUNT = {"$size": "$bookings"}
_USER_COUNT = {"$size": {"$setUnion": ["$bookings.user"]}}
SLOTLOCK_SHAPE = DocumentShape(
    document=slotlock_document,
    free=[{"$set": {"remaining": "$capacity", "version": 1, "bookings": []}}],
    booked={"bookings.0": {"$exists": True}},
    booking_count=_BOOKING_COUNT,
    wrong={
        "$expr": {
            "$or": [
                {"$gt": [_BOOKING_COUNT, "$capacity"]},
                {"$ne": [{"$add": ["$remaining", _BOOKING_COUNT]}, "$capacity"]},
                {"$ne": [_USER_COUNT, _BOOKING_COUNT]},
            ]
        }
    },
    indexes={
        index.name: (index.keys, dict(index.options)) for index in slot_documents.SLOT_INDEXES
    },
)
