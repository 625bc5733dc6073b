"""What the update of a booking costs mongod, by the indexes and by the bookings of the slot.

The variants take turns, one command each in a random order: the load of a machine changes faster
than a variant could be measured alone. Slots have one booking or a thousand. It needs Linux, which
counts the time of each thread.
"""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import monotonic

from bson import ObjectId
from pymongo import WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database

from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets.slots import PEER_SHAPE, SLOTLOCK_SHAPE, Document
from bench.growth.cases import roster_shape
from slotlock.infrastructure.mongo.slots.booking_documents import to_booking
from slotlock.infrastructure.mongo.slots.slot_document_updates import to_addition, version_filter
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state

# As many updates as a group of bookings sends in one command.
BATCH_SIZE = 32
SLOTS = 2 * BATCH_SIZE
PLACES = 50_000
LARGE_ROSTER = 1_000
ROSTER_INDEXES = frozenset({"booked_user", "choice_group", "history_by", "promoted_waitlisted_by"})
REPORT_INDEXES = frozenset(
    {"history_by", "waitlisted_by", "promoted_waitlisted_by", "cancelled_by"}
    | {"choice_group_start"}
)
ALL_INDEXES = frozenset(SLOTLOCK_SHAPE.indexes)


@dataclass(frozen=True, slots=True)
class Variant:
    """Slots with so many bookings, without some indexes."""

    name: str
    roster: int
    dropped: frozenset[str] = frozenset()


VARIANTS = (
    Variant("1 booking", 1),
    Variant("1 booking, no index for reports", 1, REPORT_INDEXES),
    Variant("1 booking, no index on bookings.*", 1, ROSTER_INDEXES),
    Variant("1 booking, _id only", 1, ALL_INDEXES),
    Variant("1,000 bookings", LARGE_ROSTER),
    Variant(
        "1,000 bookings, no history_by, promoted_waitlisted_by",
        LARGE_ROSTER,
        frozenset({"history_by", "promoted_waitlisted_by"}),
    ),
    Variant("1,000 bookings, no booked_user", LARGE_ROSTER, frozenset({"booked_user"})),
    Variant("1,000 bookings, no index on bookings.*", LARGE_ROSTER, ROSTER_INDEXES),
)


@dataclass(slots=True)
class BookedSlots:
    """The slots of one variant."""

    slots: Collection[Document]
    versions: dict[ObjectId, int] = field(default_factory=dict)

    def updates(self) -> list[Document]:
        """Return the updates of the next command, which books half of the slots once."""
        return [self._update(number) for number in random.sample(range(SLOTS), BATCH_SIZE)]

    def _update(self, number: int) -> Document:
        now = datetime.now(UTC)
        document = SLOTLOCK_SHAPE.document(number, now, PLACES)
        version = self.versions.get(document["_id"], 1)
        self.versions[document["_id"]] = version + 1
        before = to_slot_state({**document, "version": version})
        row = {"id": ObjectId(), "user": ObjectId(), "at": now}
        booked = before.with_booking(to_booking(before.id, row))
        after = booked.with_version(version + 1, now, before.slot, None)
        return {"q": version_filter(before), "u": to_addition(before, after)}


@dataclass(frozen=True, slots=True)
class PeerSlots:
    """The slots of the fastest peer, which have one place."""

    slots: Collection[Document]

    def updates(self) -> list[Document]:
        """Free the slots, and return the updates that book all of them."""
        self.slots.update_many({}, PEER_SHAPE.free)
        booking = {"isBooked": True, "bookedBy": str(ObjectId()), "claim": str(ObjectId())}
        return [
            {"q": {"_id": ObjectId(f"{number:024x}"), "isBooked": False}, "u": {"$set": booking}}
            for number in range(BATCH_SIZE)
        ]


def measure(servers: BenchmarkServers, seconds: float) -> list[str]:
    """Return the table of the microseconds of mongod for an update, and the ratios."""
    day = datetime.now(UTC)
    measured: dict[str, PeerSlots | BookedSlots] = {
        each.name: seed_variant(each, servers.client[f"updates_{number}"], day)
        for number, each in enumerate(VARIANTS)
    }
    measured["P2b"] = _seed_peer(servers.client["updates_peer"], day)
    costs: dict[str, list[float]] = {name: [] for name in measured}
    end = monotonic() + seconds
    while monotonic() < end:
        for name in random.sample(list(measured), len(measured)):
            each = measured[name]
            costs[name].append(_cost_us(servers.pids.mongod, each.slots, each.updates()))
    return _table(costs)


def seed_variant(variant: Variant, database: Database[Document], day: datetime) -> BookedSlots:
    """Insert the slots of a variant, and create its indexes."""
    document = roster_shape(variant.roster).document
    slots = database.get_collection("slots", write_concern=WriteConcern("majority"))
    slots.insert_many([document(number, day, PLACES) for number in range(SLOTS)])
    for name, (keys, options) in SLOTLOCK_SHAPE.indexes.items():
        if name not in variant.dropped:
            slots.create_index(keys, name=name, **options)
    return BookedSlots(slots)


def _seed_peer(database: Database[Document], day: datetime) -> PeerSlots:
    slots = database["slots"]
    slots.insert_many([PEER_SHAPE.document(number, day, 1) for number in range(BATCH_SIZE)])
    for name, (keys, options) in PEER_SHAPE.indexes.items():
        slots.create_index(keys, name=name, **options)
    return PeerSlots(slots)


def _cost_us(pid: int, slots: Collection[Document], updates: list[Document]) -> float:
    """Send the updates as one command, and return the microseconds of mongod for each."""
    command = {"update": "slots", "updates": updates, "ordered": False}
    before = _cpu_ns(pid)
    reply = slots.database.command({**command, "writeConcern": {"w": "majority"}})
    spent = _cpu_ns(pid) - before
    if reply["nModified"] != len(updates):
        raise RuntimeError(f"an update was lost: {reply}")
    return spent / len(updates) / 1000


def _cpu_ns(pid: int) -> int:
    """Return the CPU time of the threads of a process: a command takes few ticks of its `stat`."""
    spent = 0
    for each in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            spent += int(each.read_text().split()[0])
    return spent


def _table(costs: Mapping[str, Sequence[float]]) -> list[str]:
    lines = [
        "mongod us an update, 32 in a command by turns: median; ratio to the first: "
        "median of the turns (10th to 90th percentile)"
    ]
    base = costs[VARIANTS[0].name]
    for name, own in costs.items():
        ratios = [cost / other for cost, other in zip(own, base, strict=True)]
        deciles = quantiles(ratios, n=10)
        lines.append(
            f"{name:56}{median(own):>7,.0f}{median(ratios):>8.2f} "
            f"({deciles[0]:.2f} to {deciles[-1]:.2f})"
        )
    return lines
