"""Plain bookings of concurrent commands: one bulk write, and for each command its own result."""

import asyncio

import pytest

from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots import booking_adder
from slotlock.infrastructure.mongo.slots.booking_adder import find_stored_bookings
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from tests.support.stores.slot_store import ADA, BEN, SlotStore, booking_update, cancel_update

WRITTEN, CONFLICT = CommitResult.WRITTEN, CommitResult.CONFLICT


async def test_one_of_two_bookings_decided_on_the_same_version_is_written(
    store: SlotStore,
) -> None:
    before = await store.insert_slot(2)
    updates = [booking_update(before, user_id) for user_id in (ADA, BEN)]
    assert await asyncio.gather(*map(store.commit, updates)) == [WRITTEN, CONFLICT]
    assert (await store.load_roster(before.id)).bookings == updates[0].after.bookings


async def test_a_conflict_concerns_only_the_command_that_has_it(store: SlotStore) -> None:
    slots = [await store.insert_slot() for _ in range(31)]
    await store.book(slots[15].id, ADA)
    results = await asyncio.gather(*(store.commit(booking_update(slot, BEN)) for slot in slots))
    assert results == [WRITTEN] * 15 + [CONFLICT] + [WRITTEN] * 15


async def test_a_booking_that_was_written_and_cancelled_at_once_counts_as_written(
    store: SlotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.repositories.slot_writer
    booked, stale = await store.insert_slot(), await store.insert_slot()
    await store.book(stale.id, ADA)

    async def cancel_first(database: Database, updates: list[SlotWrite]) -> object:
        await store.write(cancel_update(await store.load(booked.id, BEN)))
        return await find_stored_bookings(database, updates)

    monkeypatch.setattr(booking_adder, "find_stored_bookings", cancel_first)
    results = await asyncio.gather(
        *(writer.commit(WriteSet((booking_update(slot, BEN),))) for slot in (booked, stale))
    )
    assert results == [WRITTEN, CONFLICT]
