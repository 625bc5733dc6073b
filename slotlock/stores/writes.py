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

from slotlock.domain.bookings import BookingId, SlotId
from slotlock.domain.notes import Note
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot
from slotlock.domain.teams import TeamSeen
from slotlock.stores import slot_documents as documents
from slotlock.stores import teams
from slotlock.stores.answers import KeptAnswer, answer_document
from slotlock.stores.batches import Batches
from slotlock.stores.booking_documents import ended_document, left_document
from slotlock.stores.gate import Gate, gated
from slotlock.stores.guards import Guard, held
from slotlock.stores.mongo import OPERATION_TIMEOUT_MS, WRITES_GATE, Database, Document
from slotlock.stores.notes import note_document
from slotlock.stores.people_at_hand import turned_pages
from slotlock.stores.slot_looks import seen_among

LARGEST_WRITE = 64
DUPLICATE_KEY = 11000
WRITE_CONFLICT = 112
TOGETHER_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """A slot as it was looked at, and as it shall be."""

    before: Slot
    after: Slot


@dataclass(frozen=True, slots=True)
class Changes:
    """What is written together: slots, new slots, and answers to be kept under their keys.

    `teams` and `guards` are what it depends on besides, as it was seen; `notes` tell of it.
    """

    slots: tuple[Change, ...]
    answers: tuple[KeptAnswer, ...] = ()
    teams: tuple[TeamSeen, ...] = ()
    new: tuple[Slot, ...] = ()
    guards: tuple[Guard, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def one_plain_addition(self) -> bool:
        """Whether this is one slot that gains bookings and nothing else."""
        besides = (self.answers, self.teams, self.new, self.guards, self.notes)
        if any(besides) or len(self.slots) != 1:
            return False
        change = self.slots[0]
        return not change.after.looks_elsewhere and documents.adds_only(change.before, change.after)


class _StaleError(Exception):
    """Somebody else wrote first."""


class _SlowError(Exception):
    """It was not written in the time that others can be kept waiting."""


class Writes:
    """The only way in which slots come to be and change."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(WRITES_GATE)
        self._client = database.client
        self._database = database
        self._slots = database["slots"]
        self._ended = database["endedBookings"]
        self._additions = Batches(self._add_together, LARGEST_WRITE)

    async def commit(self, changes: Changes) -> bool:
        """Write changes if everything is still as it was when they were decided on.

        False, and nothing written, when somebody else wrote first: look again, decide again.
        """
        if changes.one_plain_addition:
            with contextlib.suppress(_SlowError):
                return await self._additions.do(changes.slots[0])
        return await self._commit_together(changes)

    @gated
    async def _commit_together(self, changes: Changes) -> bool:
        conflicts: set[int | None] = set()

        async def all_of_it(session: AsyncClientSession) -> None:
            try:
                await self._write_all(changes, session)
            except OperationFailure as error:
                conflicts.update(_codes(error) & {DUPLICATE_KEY, WRITE_CONFLICT})
                raise

        # Without a limit of its own with_transaction goes on for two minutes.
        with timeout(OPERATION_TIMEOUT_MS / 1000):
            try:
                async with self._client.start_session() as session:
                    await session.with_transaction(all_of_it)
            except _StaleError:
                return False
            except PyMongoError as error:
                others = isinstance(error, OperationFailure) and _codes(error) & conflicts
                if others or (conflicts and error.timeout):
                    return False
                raise
        return True

    async def _write_all(self, changes: Changes, session: AsyncClientSession) -> None:
        for name, added in _added(changes):
            if added:
                await self._database[name].insert_many(added, session=session)
        for name, updates in _updates(changes):
            if updates:
                done = await self._database[name].bulk_write(updates, session=session)
                if done.matched_count + done.upserted_count < len(updates):
                    raise _StaleError

    async def _add_together(self, wanted: list[Change]) -> list[bool | Exception]:
        """Write the new bookings of concurrent acts, each guarded by itself; which were written.

        A slot that cannot be written soon, because a process died in a transaction on it, does not
        hold the others up: its caller is sent to wait alone.
        """
        failed: dict[int, Exception] = {}
        otherwise: Exception | None = None
        try:
            with timeout(TOGETHER_WITHIN_S):
                updates = [_guarded(change) for change in wanted]
                result = await self._slots.bulk_write(updates, ordered=False)
            if result.modified_count == len(wanted):
                return [True] * len(wanted)
        except PyMongoError as error:
            if error.timeout:
                otherwise = _SlowError()
            elif not isinstance(error, BulkWriteError) or error.details["writeConcernErrors"]:
                raise
            else:  # one statement's error is one caller's, not its neighbours'
                for each in error.details["writeErrors"]:
                    failed[each["index"]] = WriteError(each["errmsg"], each["code"])
        made = await self._made(wanted)
        return [
            failed.get(index) or _newcomers(change) <= made or otherwise or False
            for index, change in enumerate(wanted)
        ]

    async def _made(self, wanted: list[Change]) -> set[BookingId]:
        """Those of the bookings that were written: a bulk tells how many, and not which."""
        ids = [ObjectId(id_) for change in wanted for id_ in _newcomers(change)]
        query = {"_id": {"$in": [ObjectId(change.before.id) for change in wanted]}}
        found = self._slots.find(query, seen_among(ids))
        live = {entry["id"] async for document in found for entry in document["bookings"]}
        # Somebody may have ended one since.
        ended = self._ended.find(
            {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}, {"_id": 1}
        )
        return {BookingId(str(id_)) for id_ in live | {document["_id"] async for document in ended}}

    @gated
    async def correct_due(self, looked_at: Slot) -> None:
        """Keep when the next hold of this slot runs out, as it was looked at."""
        due = {"$set": {"due": looked_at.due}} if looked_at.due else {"$unset": {"due": ""}}
        await self._slots.update_one(documents.guard(looked_at), due)

    @gated
    async def postpone(self, slot_id: SlotId, until: datetime) -> None:
        """Let nobody try to sweep this slot up before then: it could not be done now."""
        with contextlib.suppress(WriteError):
            await self._slots.update_one({"_id": ObjectId(slot_id)}, {"$set": {"due": until}})


def _added(changes: Changes) -> Iterator[tuple[str, list[Document]]]:
    """What is added to which collections."""
    yield "endedBookings", [ended_document(b) for c in changes.slots for b in c.after.ended]
    yield "endedWaits", [left_document(one) for c in changes.slots for one in c.after.left]
    yield "answers", [answer_document(answer) for answer in changes.answers]
    yield "slots", [documents.new_document(slot) for slot in changes.new]
    yield "notes", [note_document(note) for note in changes.notes]


def _updates(changes: Changes) -> Iterator[tuple[str, list[UpdateOne]]]:
    """What is updated in which collections, each matching only what was seen.

    The slots come last: a process that dies in between keeps them from others until MongoDB gives
    the transaction up.
    """
    yield "pages", _pages(changes.slots)
    yield "teams", [UpdateOne(teams.guard(seen), teams.hold()) for seen in changes.teams]
    for guard in changes.guards:
        name, update = held(guard)
        yield name, [update]
    yield "slots", [_guarded(change) for change in changes.slots]


def _pages(slots: Iterable[Change]) -> list[UpdateOne]:
    """One page for all that a person is given in this write.

    Errors: _StaleError when two of the decisions were made on different versions of it.
    """
    pages: dict[UserId, UpdateOne] = {}
    for change in slots:
        for user_id, page in turned_pages(change.before, change.after):
            if pages.setdefault(user_id, page) != page:
                raise _StaleError
    return list(pages.values())


def _newcomers(change: Change) -> set[BookingId]:
    had = {booking.id for booking in change.before.bookings}
    return {booking.id for booking in change.after.bookings if booking.id not in had}


def _guarded(change: Change) -> UpdateOne:
    update = documents.update_of(change.before, change.after)
    return UpdateOne(documents.guard(change.before), update)


def _codes(error: OperationFailure) -> set[int | None]:
    if isinstance(error, BulkWriteError):
        return {each["code"] for each in error.details["writeErrors"]}
    return {error.code}
