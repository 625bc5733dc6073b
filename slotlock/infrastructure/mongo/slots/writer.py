"""Writing what was decided: guarded by version, all of it or nothing.

One slot that gains bookings is one update, and those of concurrent acts leave together. Whatever
concerns several documents, because bookings end or move, somebody's other bookings count, or the
answer is to be kept under a key, is one transaction.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne, timeout
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import (
    BulkWriteError,
    OperationFailure,
    PyMongoError,
    WriteError,
)

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.slot import Slot
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo import teams
from slotlock.infrastructure.mongo.audit.notes import note_to_document
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    WRITES_CONCURRENCY,
    Database,
    Document,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord, record_to_document
from slotlock.infrastructure.mongo.slots import documents
from slotlock.infrastructure.mongo.slots.booking_documents import (
    ended_booking_to_document,
    ended_waitlist_entry_to_document,
)
from slotlock.infrastructure.mongo.slots.preconditions import Precondition, version_check
from slotlock.infrastructure.mongo.slots.queries import booking_ids_projection
from slotlock.infrastructure.mongo.slots.user_contexts import user_version_updates

MAX_BULK_SIZE = 64
DUPLICATE_KEY = 11000
WRITE_CONFLICT = 112
BULK_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class SlotChange:
    """A slot as it was looked at, and as it shall be."""

    before: Slot
    after: Slot


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What is written together: slots, new slots, and answers to be kept under their keys.

    `teams` and `guards` are what it depends on besides, as it was seen; `notes` tell of it.
    """

    slot_changes: tuple[SlotChange, ...]
    idempotency_records: tuple[IdempotencyRecord, ...] = ()
    team_versions: tuple[TeamVersion, ...] = ()
    new_slots: tuple[Slot, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    audit_notes: tuple[AuditNote, ...] = ()

    @property
    def is_single_booking(self) -> bool:
        """Whether this is one slot that gains bookings and nothing else."""
        besides = (
            self.idempotency_records,
            self.team_versions,
            self.new_slots,
            self.preconditions,
            self.audit_notes,
        )
        if any(besides) or len(self.slot_changes) != 1:
            return False
        change = self.slot_changes[0]
        return not change.after.depends_on_other_bookings and documents.only_adds_bookings(
            change.before, change.after
        )


class _VersionConflictError(Exception):
    """Somebody else wrote first."""


class _TooSlowError(Exception):
    """It was not written in the time that others can be kept waiting."""


class SlotWriter:
    """The only way in which slots come to be and change."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(WRITES_CONCURRENCY)
        self._client = database.client
        self._database = database
        self._slots = database["slots"]
        self._ended_bookings = database["endedBookings"]
        self._bulk_adder = Batcher(self._bulk_add, MAX_BULK_SIZE)

    async def commit(self, changes: ChangeSet) -> bool:
        """Write changes if everything is still as it was when they were decided on.

        False, and nothing written, when somebody else wrote first: look again, decide again.
        """
        if changes.is_single_booking:
            with contextlib.suppress(_TooSlowError):
                return await self._bulk_adder.submit(changes.slot_changes[0])
        return await self._commit_transaction(changes)

    @limited
    async def _commit_transaction(self, changes: ChangeSet) -> bool:
        conflicts: set[int | None] = set()

        async def write_changes(session: AsyncClientSession) -> None:
            try:
                await self._write_all(changes, session)
            except OperationFailure as error:
                conflicts.update(_error_codes(error) & {DUPLICATE_KEY, WRITE_CONFLICT})
                raise

        # Without a limit of its own with_transaction goes on for two minutes.
        with timeout(OPERATION_TIMEOUT_MS / 1000):
            try:
                async with self._client.start_session() as session:
                    await session.with_transaction(write_changes)
            except _VersionConflictError:
                return False
            except PyMongoError as error:
                others = isinstance(error, OperationFailure) and _error_codes(error) & conflicts
                if others or (conflicts and error.timeout):
                    return False
                raise
        return True

    async def _write_all(self, changes: ChangeSet, session: AsyncClientSession) -> None:
        for name, added in _inserts(changes):
            if added:
                await self._database[name].insert_many(added, session=session)
        for name, updates in _updates(changes):
            if updates:
                done = await self._database[name].bulk_write(updates, session=session)
                if done.matched_count + done.upserted_count < len(updates):
                    raise _VersionConflictError

    async def _bulk_add(self, slot_changes: list[SlotChange]) -> list[bool | Exception]:
        """Write the new bookings of concurrent acts, each guarded by itself; which were written.

        A slot that cannot be written soon, because a process died in a transaction on it, does not
        hold the others up: its caller is sent to wait alone.
        """
        failed: dict[int, Exception] = {}
        otherwise: Exception | None = None
        try:
            with timeout(BULK_TIMEOUT_S):
                updates = [_versioned_update(change) for change in slot_changes]
                result = await self._slots.bulk_write(updates, ordered=False)
            if result.modified_count == len(slot_changes):
                return [True] * len(slot_changes)
        except PyMongoError as error:
            if error.timeout:
                otherwise = _TooSlowError()
            elif not isinstance(error, BulkWriteError) or error.details["writeConcernErrors"]:
                raise
            else:  # one statement's error is one caller's, not its neighbours'
                for each in error.details["writeErrors"]:
                    failed[each["index"]] = WriteError(each["errmsg"], each["code"])
        made = await self._find_written(slot_changes)
        return [
            failed.get(index) or _new_booking_ids(change) <= made or otherwise or False
            for index, change in enumerate(slot_changes)
        ]

    async def _find_written(self, slot_changes: list[SlotChange]) -> set[BookingId]:
        """Those of the bookings that were written: a bulk tells how many, and not which."""
        ids = [ObjectId(id_) for change in slot_changes for id_ in _new_booking_ids(change)]
        query = {"_id": {"$in": [ObjectId(change.before.id) for change in slot_changes]}}
        found = self._slots.find(query, booking_ids_projection(ids))
        live = {entry["id"] async for document in found for entry in document["bookings"]}
        # Somebody may have ended one since.
        ended = self._ended_bookings.find(
            {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}, {"_id": 1}
        )
        return {BookingId(str(id_)) for id_ in live | {document["_id"] async for document in ended}}

    @limited
    async def set_next_deadline(self, slot: Slot) -> None:
        """Keep when the next hold of this slot runs out, as it was looked at."""
        due = (
            {"$set": {"due": slot.next_deadline}} if slot.next_deadline else {"$unset": {"due": ""}}
        )
        await self._slots.update_one(documents.version_filter(slot), due)

    @limited
    async def defer_sweep(self, slot_id: SlotId, until: datetime) -> None:
        """Let nobody try to sweep this slot up before then: it could not be done now."""
        with contextlib.suppress(WriteError):
            await self._slots.update_one({"_id": ObjectId(slot_id)}, {"$set": {"due": until}})


def _inserts(changes: ChangeSet) -> Iterator[tuple[str, list[Document]]]:
    """What is added to which collections."""
    yield (
        "endedBookings",
        [
            ended_booking_to_document(b)
            for c in changes.slot_changes
            for b in c.after.ended_bookings
        ],
    )
    yield (
        "endedWaits",
        [
            ended_waitlist_entry_to_document(one)
            for c in changes.slot_changes
            for one in c.after.ended_waitlist_entries
        ],
    )
    yield "answers", [record_to_document(answer) for answer in changes.idempotency_records]
    yield "slots", [documents.to_document(slot) for slot in changes.new_slots]
    yield "notes", [note_to_document(note) for note in changes.audit_notes]


def _updates(changes: ChangeSet) -> Iterator[tuple[str, list[UpdateOne]]]:
    """What is updated in which collections, each matching only what was seen.

    The slots come last: a process that dies in between keeps them from others until MongoDB gives
    the transaction up.
    """
    yield "pages", _merge_user_version_updates(changes.slot_changes)
    yield (
        "teams",
        [
            UpdateOne(teams.version_filter(seen), teams.touch_update())
            for seen in changes.team_versions
        ],
    )
    for guard in changes.preconditions:
        name, update = version_check(guard)
        yield name, [update]
    yield "slots", [_versioned_update(change) for change in changes.slot_changes]


def _merge_user_version_updates(slot_changes: Iterable[SlotChange]) -> list[UpdateOne]:
    """One page for all that a person is given in this write.

    Errors: _StaleError when two of the decisions were made on different versions of it.
    """
    pages: dict[UserId, UpdateOne] = {}
    for change in slot_changes:
        for user_id, page in user_version_updates(change.before, change.after):
            if pages.setdefault(user_id, page) != page:
                raise _VersionConflictError
    return list(pages.values())


def _new_booking_ids(change: SlotChange) -> set[BookingId]:
    had = {booking.id for booking in change.before.bookings}
    return {booking.id for booking in change.after.bookings if booking.id not in had}


def _versioned_update(change: SlotChange) -> UpdateOne:
    update = documents.to_update(change.before, change.after)
    return UpdateOne(documents.version_filter(change.before), update)


def _error_codes(error: OperationFailure) -> set[int | None]:
    if isinstance(error, BulkWriteError):
        return {each["code"] for each in error.details["writeErrors"]}
    return {error.code}
