"""A slot that a dead process's transaction keeps: it waits alone, and nobody else with it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.book import BookingRequest, book
from slotlock.domain.booking.promotion import next_version
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo import transactions
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide
from tests.support.stores.slots import insert_new_slots

ADA = UserId("a" * 24)


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database of the test's own."""
    client, opened = connect(database_url(servers, "stuck"))
    try:
        yield opened
    finally:
        await client.close()


def booked(before: Slot) -> ChangeSet:
    """Ada's booking of a slot."""
    after, _ = decide(book, before, BookingRequest(ADA, new_booking_id(), ADA), NOW)
    return ChangeSet((SlotUpdate(before, next_version(before, after, NOW)),))


async def test_a_slot_that_cannot_be_written_keeps_no_other_waiting(database: Database) -> None:
    writes = SlotWriter(database)
    stuck, free = build_slot(id=new_slot_id()), build_slot(id=new_slot_id())
    await insert_new_slots(database, stuck, free)
    async with database.client.start_session() as dead:
        await dead.start_transaction()
        this = {"_id": ObjectId(stuck.id)}
        await database["slots"].update_one(this, {"$set": {"title": "never"}}, session=dead)
        waits = asyncio.create_task(writes.commit(booked(stuck)))
        assert check_written(await writes.commit(booked(free)))
        assert not waits.done()
        await dead.abort_transaction()
        assert check_written(await waits)


async def test_who_has_a_transaction_with_a_stuck_slot_is_told_to_try_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "OPERATION_TIMEOUT_MS", 2_000)
    writes = SlotWriter(database)
    stuck = build_slot(id=new_slot_id())
    await insert_new_slots(database, stuck)
    answer = IdempotencyRecord(str(ObjectId()), "a question", "an answer", NOW)
    async with database.client.start_session() as dead:
        await dead.start_transaction()
        this = {"_id": ObjectId(stuck.id)}
        await database["slots"].update_one(this, {"$set": {"title": "never"}}, session=dead)
        changes = replace(booked(stuck), idempotency_records=(answer,))
        assert not check_written(await writes.commit(changes))
        await dead.abort_transaction()
    assert check_written(await writes.commit(changes))
