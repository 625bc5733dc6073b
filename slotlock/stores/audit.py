"""The log of what happened, read from where it is kept: bookings, turns, and organisers' notes.

Every change of a booking is written with the booking (see docs/decisions/0011), so that the log
is put together when it is read, from one snapshot. A page costs what the campaign, slot or person
that it is about has of bookings.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit import AuditEntry, AuditFilter, AuditPosition, Happening
from slotlock.domain.audit import newest as in_order
from slotlock.domain.bookings import BookingId, SlotId
from slotlock.domain.listing import Page
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Limit
from slotlock.stores import audit_pipelines as pipelines
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import Database, Document
from slotlock.stores.notes import Notes

WAITLIST = (Happening.WAITLIST_JOINED, Happening.WAITLIST_LEFT)


class Audit:
    """Everything that happened."""

    def __init__(self, database: Database, lists: Gate) -> None:
        # Of the operations that lists may have under way, one at most is of this kind.
        self.gate = Gate(1)
        self.lists = lists
        self._client = database.client
        self._slots = database["slots"]
        self._ended = database["endedBookings"]
        self._turns = database["endedWaits"]
        self._notes = Notes(database)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        await self._ended.create_index([("log.by", 1), ("endedAt", 1)], name="by")
        for name in ("slot", "user", "by"):
            await self._turns.create_index([(name, 1), ("at", 1)], name=name)
        await self._notes.prepare()

    @gated
    async def page(
        self, wanted: AuditFilter, first: int, after: AuditPosition | None, now: datetime
    ) -> Page[AuditEntry]:
        """The next `first` entries that somebody looks for, the newest first."""
        return await self._in_turn(wanted, first, after, now)

    @listed
    async def _in_turn(
        self, wanted: AuditFilter, first: int, after: AuditPosition | None, now: datetime
    ) -> Page[AuditEntry]:
        async with self._client.start_session(snapshot=True) as session:
            found = await self._notes.newest(wanted, after, first + 1, session)
            if wanted.rosters:
                found += await self._on_rosters(wanted, after, first + 1, now, session)
        entries = in_order(found)
        return Page(tuple(entries[:first]), len(entries) > first)

    async def _on_rosters(
        self,
        wanted: AuditFilter,
        after: AuditPosition | None,
        most: int,
        now: datetime,
        session: AsyncClientSession,
    ) -> list[AuditEntry]:
        slot_ids = await self._slot_ids(wanted, session)
        newest = pipelines.newest(wanted, after, most)
        found: list[AuditEntry] = []
        for collection, pipeline in (
            (self._slots, pipelines.of_slots(wanted, now)),
            (self._ended, pipelines.of_ended(wanted, slot_ids)),
            (self._turns, pipelines.of_turns(wanted, slot_ids)),
        ):
            some = await collection.aggregate([*pipeline, *newest], session=session)
            found += [_entry(document) async for document in some]
        return found

    async def _slot_ids(
        self, wanted: AuditFilter, session: AsyncClientSession
    ) -> Sequence[ObjectId]:
        if wanted.campaign_id is None:
            return ()
        query = {"campaign.id": ObjectId(wanted.campaign_id)}
        found = self._slots.find(query, {"_id": 1}, session=session)
        return [document["_id"] async for document in found]


def _entry(document: Document) -> AuditEntry:
    entry, thing = document["log"], str(document["id"])
    what, before = Happening(entry["do"]), document["before"]
    return AuditEntry(
        AuditPosition(entry["at"], thing, document["n"]),
        what,
        UserId(str(entry["by"])) if entry["by"] else None,
        UserId(str(document["user"])),
        SlotId(str(document["slot"])),
        None if what in WAITLIST else BookingId(thing),
        BookingStatus(before) if before else None,
        BookingStatus(entry["to"]) if entry["to"] else None,
        entry.get("until"),
        tuple(Limit(limit) for limit in entry.get("over", ())),
    )
