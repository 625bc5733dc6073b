"""Guards of what is written, switched off one by one as the five designs lacked them."""

from collections.abc import Iterator
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.slots import Slot
from slotlock.stores import people_at_hand, slot_documents
from slotlock.stores.booking_documents import entry_of
from slotlock.stores.writes import Change, Changes, Writes
from tests.support.variants.points import instead, reach

update_of = slot_documents.update_of
write_all, commit, commit_together = Writes._write_all, Writes.commit, Writes._commit_together
insert_many = AsyncCollection.insert_many


RECORDS = ("endedBookings", "endedWaits", "answers")


def _absolute(before: Slot, after: Slot) -> Any:
    update = update_of(before, after)
    if isinstance(update, list):
        update[0]["$set"]["remaining"] = after.remaining
    else:
        del update["$inc"]
        update["$set"]["remaining"] = after.remaining
    return update


def absolute_counts() -> None:
    """The stock is written as the number that was worked out from what was read (D2)."""
    slot_documents.update_of = _absolute


async def _counted_then_inserted(self: Writes, wanted: list[Change]) -> list[bool]:
    slots, written = self._slots, []
    for change in wanted:
        before, after = change.before, change.after
        count = {"$inc": {"remaining": before.taken - after.taken, "version": 1}}
        done = await slots.update_one(slot_documents.guard(before), count)
        written.append(done.modified_count == 1)
        await reach("between")
        added = [entry_of(booking) for booking in after.bookings if booking not in before.bookings]
        insert = {"$push": {"bookings": {"$each": added}}}
        await slots.update_one({"_id": ObjectId(before.id)}, insert)
    return written


def count_and_booking_apart() -> None:
    """The place is taken in one write, the booking made in the next (D3)."""
    Writes._add_together = _counted_then_inserted  # type: ignore[method-assign,assignment]


async def _without_transaction(self: Writes, changes: Changes) -> bool:
    session: Any = None
    await write_all(self, changes, session)
    return True


def no_transaction() -> None:
    """What belongs to a change is written by itself (D2)."""
    Writes._commit_together = _without_transaction  # type: ignore[method-assign]


async def _one_by_one(self: Writes, changes: Changes) -> bool:
    if not changes.slots:
        return await commit_together(self, changes)
    done = True
    for change in changes.slots:
        done &= await commit_together(self, Changes((change,)))
        await reach("between")
    return done


def one_slot_after_the_other() -> None:
    """Several slots are written one by one (D4)."""
    Writes._commit_together = _one_by_one  # type: ignore[method-assign]


def _none(*_: Any) -> Iterator[UpdateOne]:
    return iter(())


def no_pages() -> None:
    """Nothing tells whether a person chose elsewhere meanwhile (D4)."""
    instead(people_at_hand.turned_pages, _none)


GUARDS = {
    "relative-counts": absolute_counts,
    "one-write": count_and_booking_apart,
    "transaction": no_transaction,
    "all-or-none": one_slot_after_the_other,
    "pages": no_pages,
}


async def _late_record(self: Any, *arguments: Any, **more: Any) -> Any:
    written = await insert_many(self, *arguments, **more)
    if self.name in RECORDS:
        await reach("record")
    return written


async def _late_end(self: Writes, changes: Changes, session: Any) -> None:
    await write_all(self, changes, session)
    if changes.slots:
        await reach("transaction")


def pausable() -> None:
    """Let acts be stopped after they wrote records, and before their transaction commits."""
    AsyncCollection.insert_many = _late_record  # type: ignore[method-assign]
    Writes._write_all = _late_end  # type: ignore[method-assign]


async def _failing(self: Writes, changes: Changes) -> bool:
    if not changes.slots:
        return await commit(self, changes)
    Writes.commit = commit  # type: ignore[method-assign]
    raise RuntimeError("the first write fails")


def first_write_fails() -> None:
    """No guard but a mishap: the first write of the process is an error."""
    Writes.commit = _failing  # type: ignore[method-assign]


MISHAPS = {"first-write": first_write_fails}
