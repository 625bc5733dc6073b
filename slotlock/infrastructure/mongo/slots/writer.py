"""Commits decisions: conditional on the versions that they are based on, all or nothing.

Bookings that are added to one slot are one update, and the updates of concurrent commands are one
bulk write. A change of several documents is a transaction: bookings that end or move, bookings that
depend on the user's other bookings, and changes with an idempotency record.

An update that MongoDB does not confirm in time is settled by the adder. The driver settles a
transaction: MongoDB answers a repeated commit with the result of the first.
"""

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId
from pymongo import DeleteOne, UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import OperationFailure, PyMongoError, WriteError

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import (
    DUPLICATE_KEY,
    WRITE_CONFLICT,
    WRITES_CONCURRENCY,
    Database,
    Document,
    error_codes,
    is_commit_unknown,
)
from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    limited,
)
from slotlock.infrastructure.mongo.indexes.index import repair_outdated
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.slots.booking_adder import (
    MAX_BULK_SIZE,
    BookingAdder,
    StoredBookings,
    find_stored_bookings,
    new_booking_ids,
)
from slotlock.infrastructure.mongo.slots.slot_documents import (
    LIST_FIELD_SOURCES,
    list_fields,
    numbers_query,
)
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    CommitResult,
    SlotWrite,
    WriteSet,
    inserts_of,
    updates_of,
)
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.tasks import Signal

FIND_TIMEOUT_S = 1.0
# A deadline that is nearer when it is written comes before a regular sweep sees it.
NEAR_DEADLINE = timedelta(seconds=3)
# The field of a command that contains its statements.
STATEMENTS = {"insert": "documents", "update": "updates"}


class _VersionConflictError(Exception):
    """Another writer was first."""


class SlotWriter:
    """Inserts, updates and deletes slots. All changes by decisions pass through it."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITES_CONCURRENCY)
        self.adder = BookingAdder(database)
        self._database = database
        self._slots = database["slots"]
        # Sent when this process writes a near deadline.
        self.deadline_set = Signal()

    async def commit(self, changes: WriteSet) -> CommitResult:
        """Write a change set if everything is still as it was when it was decided.

        Raises:
            PyMongoError: MongoDB rejected the change, or is unavailable.
        """
        if changes.only_adds_to_one_slot:
            return await self.adder.add(changes.slot_writes[0])
        committed = await self._commit_transaction(changes)
        if committed is CommitResult.UNKNOWN:
            return await self._find_commit_result(changes)
        return committed

    async def commit_group(self, changes: WriteSet) -> CommitResult:
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
        self, changes: WriteSet, *, wait_for_others: bool = True
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
        if any(map(_sets_near_deadline, changes.slot_writes)):
            self.deadline_set.send()
        return CommitResult.WRITTEN

    async def _write_all(self, changes: WriteSet, session: AsyncClientSession) -> None:
        # Edits by organizers may be larger than a command.
        are_small = not changes.must_commit_alone
        for name, added in inserts_of(changes):
            if added and are_small:
                await self._run_each("insert", name, added, session)
            elif added:
                await self._database[name].insert_many(added, session=session)
        for name, updates in updates_of(changes):
            if updates and are_small:
                await self._run_each("update", name, updates, session)
            elif updates:
                await self._update_in_bulk(name, updates, session)
        if changes.deleted_slots:
            filters = map(slot_document_updates.version_filter, changes.deleted_slots)
            deletions = list(map(DeleteOne, filters))
            done = await self._slots.bulk_write(deletions, session=session)
            if done.deleted_count < len(deletions):
                raise _VersionConflictError

        for campaign in changes.free_numbers:
            await self._check_numbers(campaign, session)

    async def _check_numbers(self, campaign: CampaignVersion, session: AsyncClientSession) -> None:
        """Check that no two slots have one of these numbers.

        This transaction writes the campaign before, so that no other one gives a number meanwhile.
        """
        query = numbers_query(campaign.campaign_id, campaign.numbers)
        found = [each["number"] async for each in self._slots.find(query, session=session)]
        if len(found) > len(set(found)):
            raise _VersionConflictError

    async def _run_each(
        self,
        name: str,
        collection: str,
        statements: Sequence[Document],
        session: AsyncClientSession,
    ) -> None:
        """Run the statements of an `insert` or `update` command, MAX_BULK_SIZE in each.

        The driver's own functions would cost the process 10 to 20 calls for each statement.
        """
        for some in chunked(statements, MAX_BULK_SIZE):
            command = {name: collection, STATEMENTS[name]: some}
            reply = await self._database.command(command, session=session)
            for error in reply.get("writeErrors", ()):
                raise WriteError(error["errmsg"], error["code"])
            if reply["n"] < len(some):
                raise _VersionConflictError

    async def _update_in_bulk(
        self, name: str, updates: Sequence[Document], session: AsyncClientSession
    ) -> None:
        done = await self._database[name].bulk_write(
            [UpdateOne(each["q"], each["u"], upsert="upsert" in each) for each in updates],
            session=session,
        )
        if done.matched_count + done.upserted_count < len(updates):
            raise _VersionConflictError

    async def _find_commit_result(self, changes: WriteSet) -> CommitResult:
        """Return the result of an unconfirmed write, as far as its new bookings show it."""
        adding = [update for update in changes.slot_writes if new_booking_ids(update)]
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
    async def _find_written_soon(self, slot_writes: Sequence[SlotWrite]) -> StoredBookings:
        with timeout(FIND_TIMEOUT_S):
            return await find_stored_bookings(self._database, slot_writes)

    @limited
    async def set_next_deadline(self, slot: SlotState) -> None:
        """Correct the next deadline of a slot, unless the slot has changed."""
        update = (
            {"$set": {"nextDeadline": slot.next_deadline}}
            if slot.next_deadline
            else {"$unset": {"nextDeadline": ""}}
        )
        await self._slots.update_one(slot_document_updates.version_filter(slot), update)

    async def backfill_list_fields(self) -> None:
        """Write what lists find and order slots by anew, where another folding wrote it."""
        await repair_outdated(self._slots, LIST_FIELD_SOURCES, list_fields)

    @limited
    async def defer_sweep(self, slot_id: SlotId, until: datetime) -> None:
        """Let the sweeper skip a slot until then, because it cannot be written now."""
        with contextlib.suppress(WriteError):
            await self._slots.update_one(
                {"_id": ObjectId(slot_id)}, {"$set": {"nextDeadline": until}}
            )


def _sets_near_deadline(write: SlotWrite) -> bool:
    deadline = write.after.next_deadline
    if deadline is None or deadline == write.before.next_deadline:
        return False
    return deadline - write.after.changed_at < NEAR_DEADLINE
