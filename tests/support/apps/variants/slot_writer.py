"""Guards of the writes to MongoDB, and pause points around them.

D1 to D5 are the five published designs that docs/defects.md compares.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.teams.team import TeamVersion
from slotlock.infrastructure.mongo import team_repository
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import slot_document_updates, user_context_loader
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.booking_documents import booking_to_subdocument
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

original_to_update = slot_document_updates.to_update
original_to_addition = slot_document_updates.to_addition
original_write_all, original_commit, original_commit_in_transaction = (
    SlotWriter._write_all,
    SlotWriter.commit,
    SlotWriter._commit_transaction,
)
original_insert_many, original_run_each = AsyncCollection.insert_many, SlotWriter._run_each
RECORD_COLLECTIONS = ("ended_bookings", "ended_waitlist_entries", "idempotency_records")


def _id_only_filter(before: SlotState) -> dict[str, Any]:
    return {"_id": ObjectId(before.id)}


def ignore_slot_version() -> None:
    """Check, then update without comparing the version (D1)."""
    slot_document_updates.version_filter = _id_only_filter


def _id_only_team_filter(team_version: TeamVersion) -> dict[str, Any]:
    return {"_id": ObjectId(team_version.team_id)}


def ignore_team_version() -> None:
    """Write a change of a team without comparing its version."""
    team_repository.version_filter = _id_only_team_filter


def _update_with_absolute_count(before: SlotState, after: SlotState) -> Any:
    if not after.change.only_adds_bookings:
        pipeline: Any = original_to_update(before, after)
        pipeline[0]["$set"]["remaining"] = after.remaining
        return pipeline
    update = original_to_addition(before, after)
    del update["$inc"]
    update["$set"]["remaining"] = after.remaining
    return update


def write_absolute_counts() -> None:
    """Write the number of remaining places as an absolute value (D2)."""
    slot_document_updates.to_update = _update_with_absolute_count
    slot_document_updates.to_addition = _update_with_absolute_count


async def _count_then_insert(
    self: BookingAdder, changes: Sequence[SlotWrite]
) -> list[CommitResult]:
    slots, written = self._slots, []
    for change in changes:
        before, after = change.before, change.after
        count = {"$inc": {"remaining": before.booked_count - after.booked_count, "version": 1}}
        done = await slots.update_one(slot_document_updates.version_filter(before), count)
        written.append(CommitResult.WRITTEN if done.modified_count else CommitResult.CONFLICT)
        await pause_if_selected("between-steps")
        added = [
            booking_to_subdocument(booking)
            for booking in after.bookings
            if booking not in before.bookings
        ]
        insert = {"$push": {"bookings": {"$each": added}}}
        await slots.update_one({"_id": ObjectId(before.id)}, insert)
    return written


def write_count_and_booking_separately() -> None:
    """Decrement the count in one write and add the booking in the next (D3)."""
    BookingAdder._add_bookings = _count_then_insert  # type: ignore[method-assign,assignment]


async def _commit_without_transaction(
    self: SlotWriter, changes: WriteSet, **_options: bool
) -> CommitResult:
    session: Any = None
    await original_write_all(self, changes, session)
    return CommitResult.WRITTEN


def skip_transaction() -> None:
    """Write the documents of one change without a transaction (D2)."""
    SlotWriter._commit_transaction = _commit_without_transaction  # type: ignore[method-assign]


async def _commit_one_by_one(self: SlotWriter, changes: WriteSet, **options: bool) -> CommitResult:
    if not changes.slot_writes:
        return await original_commit_in_transaction(self, changes, **options)
    results = set()
    for change in changes.slot_writes:
        only = WriteSet((change,), changes.users)
        results.add(await original_commit_in_transaction(self, only, **options))
        await pause_if_selected("between-steps")
    return results.pop() if len(results) == 1 else CommitResult.CONFLICT


def write_slots_one_by_one() -> None:
    """Commit several slots one after the other (D4)."""
    SlotWriter._commit_transaction = _commit_one_by_one  # type: ignore[method-assign]


def _no_updates(*_: Any) -> Iterator[Document]:
    return iter(())


def skip_user_version_updates() -> None:
    """Do not detect concurrent bookings of the same user in other slots (D4)."""
    replace_everywhere(user_context_loader.user_version_updates, _no_updates)


GUARDS = {
    "slot-version": ignore_slot_version,
    "team-version": ignore_team_version,
    "relative-counts": write_absolute_counts,
    "one-write": write_count_and_booking_separately,
    "transaction": skip_transaction,
    "all-or-none": write_slots_one_by_one,
    "user-versions": skip_user_version_updates,
}


async def _insert_then_pause(self: Any, *arguments: Any, **kwargs: Any) -> Any:
    written = await original_insert_many(self, *arguments, **kwargs)
    if self.name in RECORD_COLLECTIONS:
        await pause_if_selected("record")
    return written


async def _run_each_then_pause(
    self: SlotWriter, name: str, collection: str, *arguments: Any
) -> None:
    await original_run_each(self, name, collection, *arguments)
    if name == "insert" and collection in RECORD_COLLECTIONS:
        await pause_if_selected("record")


async def _write_all_then_pause(self: SlotWriter, changes: WriteSet, session: Any) -> None:
    await original_write_all(self, changes, session)
    if changes.slot_writes:
        await pause_if_selected("transaction")


def _pause_before_commit() -> None:
    commit, commit_group = SlotWriter.commit, SlotWriter.commit_group
    add_bookings = BookingAdder.add_bookings

    async def commit_after_pause(self: SlotWriter, changes: WriteSet) -> CommitResult:
        # The creation of a slot without preconditions is part of the setup of a test.
        if changes.slot_writes or changes.preconditions:
            await pause_if_selected("commit")
        return await commit(self, changes)

    async def commit_group_after_pause(self: SlotWriter, changes: WriteSet) -> CommitResult:
        await pause_if_selected("commit")
        return await commit_group(self, changes)

    async def add_after_pause(
        self: BookingAdder, slot_writes: Sequence[SlotWrite]
    ) -> list[CommitResult]:
        await pause_if_selected("commit")
        return await add_bookings(self, slot_writes)

    SlotWriter.commit = commit_after_pause  # type: ignore[method-assign]
    SlotWriter.commit_group = commit_group_after_pause  # type: ignore[method-assign]
    BookingAdder.add_bookings = add_after_pause  # type: ignore[method-assign]


def _pause_after_records() -> None:
    AsyncCollection.insert_many = _insert_then_pause  # type: ignore[method-assign]
    SlotWriter._run_each = _run_each_then_pause  # type: ignore[method-assign,assignment]


def _pause_before_transaction_commit() -> None:
    SlotWriter._write_all = _write_all_then_pause  # type: ignore[method-assign]


PAUSES: dict[str, Callable[[], None]] = {
    "commit": _pause_before_commit,
    "record": _pause_after_records,
    "transaction": _pause_before_transaction_commit,
}


async def _fail_first_commit(self: SlotWriter, changes: WriteSet) -> CommitResult:
    if not changes.slot_writes:
        return await original_commit(self, changes)
    SlotWriter.commit = original_commit  # type: ignore[method-assign]
    raise RuntimeError("the first write fails")


async def _reject_group(self: SlotWriter, changes: WriteSet) -> CommitResult:
    return CommitResult.CONFLICT


async def _reject_all(self: BookingAdder, slot_writes: Sequence[SlotWrite]) -> list[CommitResult]:
    return [CommitResult.CONFLICT for _ in slot_writes]


def fail_first_write() -> None:
    """Raise an error in the first commit of the process, and let no booking be part of a group."""
    SlotWriter.commit = _fail_first_commit  # type: ignore[method-assign]
    SlotWriter.commit_group = _reject_group  # type: ignore[method-assign]
    BookingAdder.add_bookings = _reject_all  # type: ignore[method-assign]


FAULTS = {"first-write": fail_first_write}
