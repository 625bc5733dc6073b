"""A write that MongoDB applies and acknowledges too late is never taken for another's write."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from bson import ObjectId
from pymongo import WriteConcern

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import (
    CommitUnknownError,
    Database,
    Document,
    open_database,
)
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import booking_adder, slot_documents
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder, StoredBookings
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, book_slot
from slotlock.services.commands import commit, group_commit
from slotlock.services.container import Services
from tests.support.apps.replica_pair import ReplicaPair, replica_pair
from tests.support.domain.builders import NOW, build_slot
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.polling import eventually
from tests.support.stores.late_store import short_timeouts
from tests.support.stores.slot_store import booking_update
from tests.support.stores.slots import insert_new_slots

__all__ = ["short_timeouts"]

ADA = Caller(UserId("a" * 24), Role.MEMBER, "session", NOW)
BEN = Caller(UserId("b" * 24), Role.MEMBER, "session", NOW)


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaPair]:
    """Yield a replica set whose second member can be paused."""
    with replica_pair(tmp_path_factory.mktemp("replica_pair")) as pair:
        yield pair


@pytest.fixture
async def database(mongo: ReplicaPair) -> AsyncIterator[Database]:
    """Yield a connection that reads the stored documents."""
    async with open_database(mongo.primary.url) as database:
        yield database


@pytest.fixture
async def services(servers: EmbeddedServers, mongo: ReplicaPair) -> AsyncIterator[Services]:
    """Yield services on this replica set."""
    async with AsyncExitStack() as stack:
        yield await open_services(stack, mongo.primary.url, servers.redis_url, ManualClock(NOW))


async def has_booking(database: Database, slot_id: SlotId) -> bool:
    """Return whether a majority has the booking now that writes are acknowledged again."""
    document = await database["slots"].find_one({"_id": ObjectId(slot_id)})
    return document is not None and bool(document["bookings"])


@pytest.mark.parametrize("key", [None, "a key"])
async def test_a_booking_that_is_acknowledged_too_late_never_ends_as_locked(
    services: Services, database: Database, mongo: ReplicaPair, key: str | None
) -> None:
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    mongo.secondary.pause()
    try:
        with pytest.raises(CommitUnknownError):
            await book_slot(services, ADA, new.id, ADA.user_id, BookingOptions(key=key))
    finally:
        mongo.secondary.resume()
    await eventually(lambda: has_booking(database, new.id), "the booking is there all the same")


async def test_control_unknown_taken_for_a_conflict_ends_as_locked_with_a_booking(
    services: Services, database: Database, mongo: ReplicaPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (commit, group_commit):
        monkeypatch.setattr(module, "check_written", lambda result: result is CommitResult.WRITTEN)
    monkeypatch.setattr(booking_adder, "SETTLE_TIMEOUT_S", 0.1)
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    mongo.secondary.pause()
    try:
        result = await book_slot(services, ADA, new.id, ADA.user_id, BookingOptions())
    finally:
        mongo.secondary.resume()
    assert isinstance(result.outcome, Locked)
    await eventually(lambda: has_booking(database, new.id), "the booking is there all the same")


def let_majority_be_late(
    database: Database, mongo: ReplicaPair, slot_id: SlotId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the majority have the booking before it is settled, and nothing that is written later."""
    update_each, is_settling = BookingAdder._update_each, False
    unconfirmed = database.with_options(write_concern=WriteConcern(1))

    async def update_late(
        self: BookingAdder, updates: Sequence[Document], *, majority_timeout_ms: int | None = None
    ) -> Document:
        nonlocal is_settling
        if majority_timeout_ms is not None and not is_settling:
            is_settling = True
            mongo.secondary.resume()
            await eventually(lambda: has_booking(database, slot_id), "a majority has the booking")
            mongo.secondary.pause()
            await unconfirmed["others"].insert_one({})
        return await update_each(self, updates, majority_timeout_ms=majority_timeout_ms)

    monkeypatch.setattr(BookingAdder, "_update_each", update_late)


async def book_in_lag(services: Services, database: Database, mongo: ReplicaPair) -> object:
    """Return the outcome of a booking that a majority has late, among writes that are later."""
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    with pytest.MonkeyPatch.context() as patch:
        let_majority_be_late(database, mongo, new.id, patch)
        mongo.secondary.pause()
        try:
            result = await book_slot(services, ADA, new.id, ADA.user_id, BookingOptions())
        finally:
            mongo.secondary.resume()
        return result.outcome


async def test_a_booking_of_a_late_majority_is_booked_as_soon_as_the_majority_has_it(
    services: Services, database: Database, mongo: ReplicaPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_adder, "SETTLE_TIMEOUT_S", 20.0)
    assert isinstance(await book_in_lag(services, database, mongo), Booked)


async def test_control_settling_that_waits_for_its_own_write_never_ends_in_a_lag(
    services: Services, database: Database, mongo: ReplicaPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    results_of = BookingAdder._results_of

    async def results_if_confirmed(
        self: BookingAdder, updates: Sequence[SlotWrite], *, is_confirmed: bool
    ) -> list[CommitResult]:
        if not is_confirmed:
            return [CommitResult.UNKNOWN] * len(updates)
        return await results_of(self, updates, is_confirmed=True)

    monkeypatch.setattr(BookingAdder, "_results_of", results_if_confirmed)
    with pytest.raises(CommitUnknownError):
        await book_in_lag(services, database, mongo)


async def commit_on_unconfirmed_version(
    services: Services, database: Database, mongo: ReplicaPair, *, is_new: bool
) -> tuple[CommitResult, SlotId]:
    """Book in a version that no majority has yet, as a new primary may serve it."""
    unconfirmed = database.with_options(write_concern=WriteConcern(1))
    slot = build_slot(1, id=new_slot_id())
    if not is_new:
        await insert_new_slots(database, slot)
    mongo.secondary.pause()
    try:
        if is_new:
            await unconfirmed["slots"].insert_one(slot_documents.to_document(slot))
        later = {"$inc": {"version": 1}}
        await unconfirmed["slots"].update_one({"_id": ObjectId(slot.id)}, later)
        before = replace(slot, version=slot.version + 1)
        changes = WriteSet((booking_update(before, ADA.user_id),))
        return await services.slot_writer.commit(changes), slot.id
    finally:
        mongo.secondary.resume()


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_read_that_is_older_than_the_decision_is_never_taken_for_a_conflict(
    services: Services, database: Database, mongo: ReplicaPair, *, is_new: bool
) -> None:
    result, slot_id = await commit_on_unconfirmed_version(services, database, mongo, is_new=is_new)
    assert result is CommitResult.UNKNOWN
    await eventually(lambda: has_booking(database, slot_id), "the booking is there all the same")


@pytest.mark.parametrize("is_new", [False, True])
async def test_control_any_other_version_taken_for_a_conflict_is_refused_and_happens(
    services: Services,
    database: Database,
    mongo: ReplicaPair,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_new: bool,
) -> None:
    def result_of(self: StoredBookings, update: SlotWrite, *, is_confirmed: bool) -> CommitResult:
        is_same = self.versions.get(update.before.id) == update.before.version
        return CommitResult.UNKNOWN if is_same else CommitResult.CONFLICT

    monkeypatch.setattr(StoredBookings, "result_of", result_of)
    result, slot_id = await commit_on_unconfirmed_version(services, database, mongo, is_new=is_new)
    assert result is CommitResult.CONFLICT
    await eventually(lambda: has_booking(database, slot_id), "the booking is there all the same")


async def test_no_refusal_relies_on_a_booking_of_its_batch_that_was_not_written(
    services: Services, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    add = BookingAdder.add

    async def add_too_late(self: BookingAdder, update: SlotWrite) -> CommitResult:
        await database["slots"].update_one({"_id": ObjectId(new.id)}, {"$inc": {"version": 1}})
        return await add(self, update)

    monkeypatch.setattr(BookingAdder, "add", add_too_late)
    commands = [
        BookSlotCommand.create(each, new.id, each.user_id, hold=False, key=None)
        for each in (ADA, BEN)
    ]
    decided = await commit.decide_and_commit(services, commands)
    assert [type(result.outcome) for result in decided.results] == [Locked, Locked]
    assert not await has_booking(database, new.id)
