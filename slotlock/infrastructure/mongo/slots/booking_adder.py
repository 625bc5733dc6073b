"""Adds bookings to slots: one update for each slot, and one command for those of many callers.

An update that MongoDB does not confirm in time is settled: another write gives the slot a new
version, which the late update cannot match, and reads wait until a majority has one of the two.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from bson import ObjectId
from pymongo import timeout
from pymongo.errors import PyMongoError, ServerSelectionTimeoutError, WriteError

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.commands import run_command
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.slots.slot_list_queries import booking_ids_projection
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite

MAX_BULK_SIZE = 64
BULK_TIMEOUT_S = 1.0
# With the bulk write before it, as long as an operation may take.
SETTLE_TIMEOUT_S = 4.0
# Between attempts while the members of a replica set elect a primary, or are late.
SETTLE_PAUSE_S = 0.1
# A late majority has the settled update first, and the settling one later or never. So an attempt
# does not wait long for the second, and reads whether a majority has the first.
SETTLE_CONFIRMATION_MS = 100
TIME_LIMIT_EXCEEDED = 50


class BookingAdder:
    """Adds bookings to slots, each update conditional on the version of its slot."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._slots = database["slots"]
        self._adder = Batcher(self._add_bookings, MAX_BULK_SIZE, is_outage=is_unavailable)
        self._settler = Batcher(self._settle_each, MAX_BULK_SIZE)

    async def add(self, update: SlotWrite) -> CommitResult:
        """Write the new bookings in a slot, together with those of other callers, and settle that.

        Raises:
            PyMongoError: MongoDB rejected them, or is unavailable.
        """
        added = await self._adder.submit(update)
        return await self.settle(update) if added is CommitResult.UNKNOWN else added

    async def add_bookings(self, slot_writes: Sequence[SlotWrite]) -> list[CommitResult]:
        """Write the new bookings in different slots. Returns the result of each.

        One that MongoDB rejected is a conflict. One that is unknown has to be settled.

        Raises:
            PyMongoError: MongoDB rejected all of them.
        """
        results = await self._add_bookings(slot_writes)
        return [CommitResult.CONFLICT if isinstance(each, Exception) else each for each in results]

    async def settle(self, update: SlotWrite) -> CommitResult:
        """Return the result of an unconfirmed update that adds bookings, and which is final.

        A late update no longer happens: the slot has a new version. The result is unknown if
        MongoDB does not confirm that in time.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_TIMEOUT_S):
                while (result := await self._settler.submit(update)) is CommitResult.UNKNOWN:
                    await asyncio.sleep(SETTLE_PAUSE_S)
                return result
        return CommitResult.UNKNOWN

    async def _settle_each(self, slot_writes: Sequence[SlotWrite]) -> list[CommitResult]:
        """Give each slot a new version if it still has the old one, and find what was written.

        What is found is final, because a majority has it, even if nothing confirms this write yet.
        """
        bumps: list[Document] = [
            {
                "q": slot_document_updates.version_filter(update.before),
                "u": {"$inc": {"version": 1}},
            }
            for update in slot_writes
        ]
        try:
            with timeout(BULK_TIMEOUT_S):
                reply = await self._update_each(bumps, majority_timeout_ms=SETTLE_CONFIRMATION_MS)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
            return [CommitResult.UNKNOWN] * len(slot_writes)
        return await self._results_of(slot_writes, is_confirmed=not _is_unconfirmed(reply))

    async def _add_bookings(
        self, slot_writes: Sequence[SlotWrite]
    ) -> list[CommitResult | Exception]:
        """Write new bookings, each conditional on its slot's version; at most MAX_BULK_SIZE.

        A slot that cannot be written soon, because a process died in a transaction on it, does not
        delay the others: its result is unknown.
        """
        updates: list[Document] = [
            {
                "q": slot_document_updates.version_filter(update.before),
                "u": slot_document_updates.to_addition(update.before, update.after),
            }
            for update in slot_writes
        ]
        errors: dict[int, Exception] = {}
        is_confirmed = False
        try:
            with timeout(BULK_TIMEOUT_S):
                reply = await self._update_each(updates)
            if reply["nModified"] == len(slot_writes) and "writeConcernError" not in reply:
                return [CommitResult.WRITTEN] * len(slot_writes)
            is_confirmed = not _is_unconfirmed(reply)
            for each in reply.get("writeErrors", ()) if is_confirmed else ():
                errors[each["index"]] = WriteError(each["errmsg"], each["code"])
        except ServerSelectionTimeoutError:  # nothing was sent
            return [CommitResult.CONFLICT] * len(slot_writes)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
        results = await self._results_of(slot_writes, is_confirmed=is_confirmed)
        return [errors.get(index) or result for index, result in enumerate(results)]

    async def _results_of(
        self, slot_writes: Sequence[SlotWrite], *, is_confirmed: bool
    ) -> list[CommitResult]:
        """Find the results of the updates. They are unknown if MongoDB does not respond in time."""
        try:
            with timeout(BULK_TIMEOUT_S):
                stored = await find_stored_bookings(self._database, slot_writes)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
            return [CommitResult.UNKNOWN] * len(slot_writes)
        return [stored.result_of(each, is_confirmed=is_confirmed) for each in slot_writes]

    async def _update_each(
        self, updates: Sequence[Document], *, majority_timeout_ms: int | None = None
    ) -> Document:
        """Send the updates as one command, and return its reply.

        After `majority_timeout_ms`, MongoDB replies that no majority has the updates yet.

        Unlike a bulk write of the driver, the command is never sent twice, which would cost
        MongoDB a record of each update. Its caller settles an unconfirmed update.
        """
        write_concern: Document = self._database.write_concern.document
        if majority_timeout_ms is not None:
            write_concern = {**write_concern, "wtimeout": majority_timeout_ms}
        command: Document = {
            "update": self._slots.name,
            "updates": list(updates),
            "ordered": False,
            "writeConcern": write_concern,
        }
        return await run_command(self._database, command)


def _is_unconfirmed(reply: Document) -> bool:
    """Return whether an update may still happen, or be undone, after this reply."""
    errors = reply.get("writeErrors", [])
    return "writeConcernError" in reply or any(
        each["code"] == TIME_LIMIT_EXCEEDED for each in errors
    )


@value_object
class StoredBookings:
    """Which new bookings MongoDB has, live or ended, and the versions of their slots."""

    booking_ids: frozenset[BookingId]
    versions: Mapping[SlotId, int]

    def result_of(self, update: SlotWrite, *, is_confirmed: bool) -> CommitResult:
        """Return the outcome of an update that adds bookings."""
        if new_booking_ids(update) <= self.booking_ids:
            return CommitResult.WRITTEN
        version = self.versions.get(update.before.slot.id)
        # After an election, a read may be older than the one that the update is based on. So an
        # older version says nothing, and neither does a missing slot: it may not be there yet.
        if version is None:
            return CommitResult.CONFLICT if is_confirmed else CommitResult.UNKNOWN
        # Versions only grow: a write that is conditional on an older one never happens.
        is_outdated = version > update.before.version
        return CommitResult.CONFLICT if is_outdated else CommitResult.UNKNOWN


async def find_stored_bookings(
    database: Database, slot_writes: Sequence[SlotWrite]
) -> StoredBookings:
    """Find which new bookings a majority has: a bulk write says how many, and not which."""
    ids = [ObjectId(id_) for update in slot_writes for id_ in new_booking_ids(update)]
    query = {"_id": {"$in": [ObjectId(update.before.slot.id) for update in slot_writes]}}
    found = await database["slots"].find(query, booking_ids_projection(ids)).to_list()
    live = {entry["id"] for document in found for entry in document["bookings"]}
    # Another command may have ended one since.
    not_live = {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}
    ended = await database["ended_bookings"].find(not_live, {"_id": 1}).to_list()
    return StoredBookings(
        frozenset(BookingId(str(id_)) for id_ in live | {each["_id"] for each in ended}),
        {SlotId(str(document["_id"])): document["version"] for document in found},
    )


def new_booking_ids(update: SlotWrite) -> set[BookingId]:
    """Return the ids of the bookings that an update adds."""
    return {booking.id for booking in update.after.change.added}
