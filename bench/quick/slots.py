"""The slots of every target: the same number with one place each, freed before each run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from bson import ObjectId
from pymongo import MongoClient, WriteConcern
from pymongo.collection import Collection

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.slots import documents

Document = dict[str, Any]

SLOTS_PER_DAY = 200
BATCH_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """The documents of a target.

    `document` takes the number of the slot and the first day; `free` are the fields of a free slot;
    `booked` and `wrong` are filters.
    """

    document: Callable[[int, datetime], Document]
    free: Document
    booked: Document
    wrong: Document
    indexes: Mapping[str, tuple[Sequence[tuple[str, int]], Document]]


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of booked slots, and of slots whose bookings and places disagree."""

    booked: int
    wrong: int


class TargetSlots:
    """The slots of one target."""

    def __init__(
        self, client: MongoClient[Document], database_name: str, shape: DocumentShape
    ) -> None:
        concern = WriteConcern("majority")
        self._slots: Collection[Document] = client[database_name].get_collection(
            "slots", write_concern=concern
        )
        self._shape = shape

    def seed(self, count: int) -> None:
        """Insert so many slots and create the indexes."""
        first_day = datetime.combine(datetime.now(UTC).date(), time(), UTC) + timedelta(days=1)
        for start in range(0, count, BATCH_SIZE):
            numbers = range(start, min(start + BATCH_SIZE, count))
            self._slots.insert_many(
                [self._shape.document(number, first_day) for number in numbers], ordered=False
            )
        for name, (keys, options) in self._shape.indexes.items():
            self._slots.create_index(keys, name=name, **options)

    def free_all(self) -> None:
        """Free the booked slots, which takes a tenth of the time of inserting all again."""
        self._slots.update_many(self._shape.booked, {"$set": self._shape.free})

    def tally(self) -> Tally:
        """Count the booked and the wrong slots in MongoDB."""
        return Tally(
            self._slots.count_documents(self._shape.booked),
            self._slots.count_documents(self._shape.wrong),
        )


def _peer_document(number: int, first_day: datetime) -> Document:
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


def _slotlock_document(number: int, first_day: datetime) -> Document:
    start = _start(number, first_day)
    slot = Slot(
        id=SlotId(f"{number:024x}"),
        title=f"Slot {number % SLOTS_PER_DAY}",
        start=start,
        end=start + timedelta(minutes=30),
        time_zone="UTC",
        capacity=1,
        location=_room(number),
        kind=SlotKind.MEETING,
        status=SlotStatus.PUBLISHED,
    )
    return documents.to_document(SlotState(slot, version=1, changed_at=first_day))


def _start(number: int, first_day: datetime) -> datetime:
    return first_day + timedelta(days=number // SLOTS_PER_DAY, minutes=number % SLOTS_PER_DAY * 5)


def _room(number: int) -> str:
    return f"Room {number % 50}"


PEER_SHAPE = DocumentShape(
    document=_peer_document,
    free={"isBooked": False, "bookedBy": None},
    booked={"isBooked": True},
    wrong={
        "$or": [
            {"isBooked": True, "bookedBy": None},
            {"isBooked": False, "bookedBy": {"$ne": None}},
        ]
    },
    indexes={"open": ([("day", 1), ("startTime", 1)], {})},
)

_BOOKED_COUNT = {"$size": "$bookings"}
SLOTLOCK_SHAPE = DocumentShape(
    document=_slotlock_document,
    free={"remaining": 1, "version": 1, "bookings": []},
    booked={"bookings.0": {"$exists": True}},
    wrong={
        "$expr": {
            "$or": [
                {"$gt": [_BOOKED_COUNT, "$capacity"]},
                {"$ne": [{"$add": ["$remaining", _BOOKED_COUNT]}, "$capacity"]},
            ]
        }
    },
    indexes=documents.INDEXES,
)
