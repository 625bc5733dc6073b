"""Commits decisions: conditional on the versions that they are based on, all or nothing.

Bookings that are added to one slot are one update, and the updates of concurrent commands are one
bulk write. A change of several documents is a transaction: bookings that end or move, bookings that
depend on the user's other bookings, and changes with an idempotency record.

An update that MongoDB does not confirm in time is settled: another write gives the slot a new
version, which the late update cannot match, and reads wait until a majority has one of the two. The
driver settles a transaction: MongoDB answers a repeated commit with the result of the first.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import (
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteError,
)

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import (
    DUPLICATE_KEY,
    WRITE_CONFLICT,
    WRITES_CONCURRENCY,
    Database,
    Document,
    error_codes,
    is_commit_unknown,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands.direct_commands import run_command
from slotlock.infrastructure.mongo.concurrency import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)
from slotlock.infrastructure.mongo.slots import documents
from slotlock.infrastructure.mongo.slots.change_set import (
    ChangeSet,
    CommitResult,
    SlotUpdate,
    inserts_of,
    updates_of,
)
from slotlock.infrastructure.mongo.slots.queries import booking_ids_projection
from slotlock.infrastructure.mongo.transactions import in_transaction

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


class _VersionConflictError(Exception):
    """Another writer was first."""


@value_object
class _StoredBookings:
    """Which new bookings MongoDB has, live or ended, and the versions of their slots."""

    booking_ids: frozenset[BookingId]
    versions: Mapping[SlotId, int]

    def result_of(self, update: SlotUpdate, *, is_confirmed: bool) -> CommitResult:
        """Return the outcome of an update that adds bookings."""
        if _new_booking_ids(update) <= self.booking_ids:
            return CommitResult.WRITTEN
        version = self.versions.get(update.before.id)
        # After an election, a read may be older than the one that the update is based on. So an
        # older version says nothing, and neither does a missing slot: it may not be there yet.
        if version is None:
            return CommitResult.CONFLICT if is_confirmed else CommitResult.UNKNOWN
        # Versions only grow: a write that is conditional on an older one never happens.
        is_outdated = version > update.before.version
        return CommitResult.CONFLICT if is_outdated else CommitResult.UNKNOWN


class SlotWriter:
    """Inserts, updates and deletes slots. All changes by decisions pass through it."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITES_CONCURRENCY)
        self._database = database
        self._slots = database["slots"]
        self._ended_bookings = database["ended_bookings"]
        self._adder = Batcher(self._add_bookings, MAX_BULK_SIZE, is_outage=is_unavailable)
        self._settler = Batcher(self._settle_each, MAX_BULK_SIZE)

    async def commit(self, changes: ChangeSet) -> CommitResult:
        """Write a change set if everything is still as it was when it was decided.

        Raises:
            PyMongoError: MongoDB rejected the change, or is unavailable.
        """
        if changes.only_adds_to_one_slot:
            update = changes.slot_updates[0]
            added = await self._adder.submit(update)
            return await self.settle(update) if added is CommitResult.UNKNOWN else added
        committed = await self._commit_transaction(changes)
        if committed is CommitResult.UNKNOWN:
            return await self._find_commit_result(changes)
        return committed

    async def commit_group(self, changes: ChangeSet) -> CommitResult:
        """Write the changes of a group, or nothing if one of them conflicts with another writer.

        Raises:
            PyMongoError: MongoDB rejected the changes, or is unavailable. Nothing was written.
            MongoOverloadedError: too many writes are waiting. Nothing was written.
        """
        committed = await self._commit_transaction(changes, wait_for_others=False)
        if committed is CommitResult.UNKNOWN:
            return await self._find_commit_result(changes)
        return committed

    @limited
    async def _commit_transaction(
        self, changes: ChangeSet, *, wait_for_others: bool = True
    ) -> CommitResult:
        """Write all or nothing. If another transaction is writing the same, wait for its end."""
        conflicts: set[int | None] = set()

        async def write_changes(session: AsyncClientSession) -> None:
            try:
                await self._write_all(changes, session)
            except OperationFailure as error:
                conflicts.update(error_codes(error) & {DUPLICATE_KEY, WRITE_CONFLICT})
                if conflicts and not wait_for_others:
                    raise _VersionConflictError from error
                raise

        try:
            await in_transaction(self._database, write_changes)
        except _VersionConflictError:
            return CommitResult.CONFLICT
        except PyMongoError as error:
            if is_commit_unknown(error):
                return CommitResult.UNKNOWN
            if error_codes(error) & conflicts or (conflicts and error.timeout):
                return CommitResult.CONFLICT
            raise
        return CommitResult.WRITTEN

    async def _write_all(self, changes: ChangeSet, session: AsyncClientSession) -> None:
        for name, added in inserts_of(changes):
            if added:
                await self._database[name].insert_many(added, session=session)
        for name, updates in updates_of(changes):
            if updates:
                done = await self._database[name].bulk_write(updates, session=session)
                done_count = done.matched_count + done.upserted_count + done.deleted_count
                if done_count < len(updates):
                    raise _VersionConflictError

    async def add_bookings(self, slot_updates: Sequence[SlotUpdate]) -> list[CommitResult]:
        """Write the new bookings in different slots. Returns the result of each.

        One that MongoDB rejected is a conflict. One that is unknown has to be settled.

        Raises:
            PyMongoError: MongoDB rejected all of them.
        """
        results = await self._add_bookings(slot_updates)
        return [CommitResult.CONFLICT if isinstance(each, Exception) else each for each in results]

    async def settle(self, update: SlotUpdate) -> CommitResult:
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

    async def _settle_each(self, slot_updates: Sequence[SlotUpdate]) -> list[CommitResult]:
        """Give each slot a new version if it still has the old one, and find what was written.

        What is found is final, because a majority has it, even if nothing confirms this write yet.
        """
        bumps: list[Document] = [
            {"q": documents.version_filter(update.before), "u": {"$inc": {"version": 1}}}
            for update in slot_updates
        ]
        try:
            with timeout(BULK_TIMEOUT_S):
                reply = await self._update_each(bumps, majority_timeout_ms=SETTLE_CONFIRMATION_MS)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
            return [CommitResult.UNKNOWN] * len(slot_updates)
        return await self._results_of(slot_updates, is_confirmed=not _is_unconfirmed(reply))

    async def _add_bookings(
        self, slot_updates: Sequence[SlotUpdate]
    ) -> list[CommitResult | Exception]:
        """Write new bookings, each conditional on its slot's version; at most MAX_BULK_SIZE.

        A slot that cannot be written soon, because a process died in a transaction on it, does not
        delay the others: its result is unknown.
        """
        updates: list[Document] = [
            {
                "q": documents.version_filter(update.before),
                "u": documents.to_update(update.before, update.after),
            }
            for update in slot_updates
        ]
        errors: dict[int, Exception] = {}
        is_confirmed = False
        try:
            with timeout(BULK_TIMEOUT_S):
                reply = await self._update_each(updates)
            if reply["nModified"] == len(slot_updates) and "writeConcernError" not in reply:
                return [CommitResult.WRITTEN] * len(slot_updates)
            is_confirmed = not _is_unconfirmed(reply)
            for each in reply.get("writeErrors", ()) if is_confirmed else ():
                errors[each["index"]] = WriteError(each["errmsg"], each["code"])
        except ServerSelectionTimeoutError:  # nothing was sent
            return [CommitResult.CONFLICT] * len(slot_updates)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
        results = await self._results_of(slot_updates, is_confirmed=is_confirmed)
        return [errors.get(index) or result for index, result in enumerate(results)]

    async def _results_of(
        self, slot_updates: Sequence[SlotUpdate], *, is_confirmed: bool
    ) -> list[CommitResult]:
        """Find the results of the updates. They are unknown if MongoDB does not respond in time."""
        try:
            with timeout(BULK_TIMEOUT_S):
                stored = await self._find_written(slot_updates)
        except PyMongoError as error:
            if not is_unavailable(error):
                raise
            return [CommitResult.UNKNOWN] * len(slot_updates)
        return [stored.result_of(each, is_confirmed=is_confirmed) for each in slot_updates]

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

    async def _find_commit_result(self, changes: ChangeSet) -> CommitResult:
        """Return the result of an unconfirmed write, as far as its new bookings show it."""
        adding = [update for update in changes.slot_updates if _new_booking_ids(update)]
        if not adding:
            return CommitResult.UNKNOWN
        try:
            stored = await self._find_written_soon(adding)
        except (PyMongoError, MongoOverloadedError):
            return CommitResult.UNKNOWN
        # All of them were written or none, so that one known result is that of all.
        results = {stored.result_of(update, is_confirmed=False) for update in adding}
        known = results - {CommitResult.UNKNOWN}
        return known.pop() if known else CommitResult.UNKNOWN

    @limited
    async def _find_written_soon(self, slot_updates: Sequence[SlotUpdate]) -> _StoredBookings:
        with timeout(BULK_TIMEOUT_S):
            return await self._find_written(slot_updates)

    async def _find_written(self, slot_updates: Sequence[SlotUpdate]) -> _StoredBookings:
        """Find which new bookings were written: a bulk write says how many, and not which."""
        ids = [ObjectId(id_) for update in slot_updates for id_ in _new_booking_ids(update)]
        query = {"_id": {"$in": [ObjectId(update.before.id) for update in slot_updates]}}
        found = await self._slots.find(query, booking_ids_projection(ids)).to_list()
        live = {entry["id"] for document in found for entry in document["bookings"]}
        # Another command may have ended one since.
        not_live = {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}
        ended = await self._ended_bookings.find(not_live, {"_id": 1}).to_list()
        return _StoredBookings(
            frozenset(BookingId(str(id_)) for id_ in live | {each["_id"] for each in ended}),
            {SlotId(str(document["_id"])): document["version"] for document in found},
        )

    @limited
    async def set_next_deadline(self, slot: SlotState) -> None:
        """Correct the next deadline of a slot, unless the slot has changed."""
        update = (
            {"$set": {"nextDeadline": slot.next_deadline}}
            if slot.next_deadline
            else {"$unset": {"nextDeadline": ""}}
        )
        await self._slots.update_one(documents.version_filter(slot), update)

    @limited
    async def defer_sweep(self, slot_id: SlotId, until: datetime) -> None:
        """Let the sweeper skip a slot until then, because it cannot be written now."""
        with contextlib.suppress(WriteError):
            await self._slots.update_one(
                {"_id": ObjectId(slot_id)}, {"$set": {"nextDeadline": until}}
            )


def _is_unconfirmed(reply: Document) -> bool:
    """Return whether an update may still happen, or be undone, after this reply."""
    errors = reply.get("writeErrors", [])
    return "writeConcernError" in reply or any(
        each["code"] == TIME_LIMIT_EXCEEDED for each in errors
    )


def _new_booking_ids(update: SlotUpdate) -> set[BookingId]:
    return {booking.id for booking in update.after.change.added}
