"""The notice board itself, on a real database, without a network in between."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.container import utc_now
from slotlock.services.live.availability import AvailabilityHub, AvailabilitySubscription
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.stores.slots import insert_new_slots


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database of this file's own."""
    client, database = connect(database_url(servers, "board"))
    try:
        yield database
    finally:
        await client.close()


@pytest.fixture
def slots(database: Database) -> SlotRepository:
    """A store of slots."""
    return SlotRepository(database)


@pytest.fixture
def writes(database: Database, slots: SlotRepository) -> SlotWriter:
    """What changes them."""
    return SlotWriter(database)


async def kept(database: Database) -> Slot:
    """A new slot in the store."""
    new = build_slot(5, id=new_slot_id())
    await insert_new_slots(database, new)
    return new


async def change(writes: SlotWriter, before: Slot) -> None:
    """A change that nobody announces."""
    after = replace(before, version=before.version + 1, title="Pilates")
    assert check_written(await writes.commit(ChangeSet((SlotUpdate(before, after),))))


async def test_healing_tells_what_no_announcement_told(
    slots: SlotRepository, writes: SlotWriter, database: Database
) -> None:
    board, before = AvailabilityHub(slots, utc_now), await kept(database)
    async with board.subscribe([before.id]) as watch:
        states = watch.states()
        assert (await anext(states)).version == 1
        await change(writes, before)
        await board.resync()
        assert (await anext(states)).version == 2
        await states.aclose()


async def test_control_without_healing_a_change_that_was_not_announced_is_not_told(
    slots: SlotRepository, writes: SlotWriter, database: Database
) -> None:
    board, before = AvailabilityHub(slots, utc_now), await kept(database)
    async with board.subscribe([before.id]) as watch:
        states = watch.states()
        await anext(states)
        await change(writes, before)
        assert not watch.has_pending


async def test_a_change_between_subscribing_and_reading_is_not_missed(
    slots: SlotRepository, database: Database
) -> None:
    board, before = AvailabilityHub(slots, utc_now), await kept(database)
    async with board.subscribe([before.id]) as watch:
        newer = state(before.id, 9)
        board.publish(newer)  # arrived while the older state was being read
        states = watch.states()
        assert await anext(states) == newer
        assert not watch.has_pending
        await states.aclose()


def state(slot_id: SlotId, version: int) -> Availability:
    """A state of a slot."""
    return Availability(slot_id, version, 100, 50, SlotStatus.PUBLISHED, NOW)


async def test_a_slow_reader_costs_one_state_a_slot_however_much_happens() -> None:
    ids = [SlotId("a"), SlotId("b")]
    watch = AvailabilitySubscription(ids)
    for version in range(10_000):
        for slot_id in ids:
            watch.publish(state(slot_id, version))
    states = watch.states()
    told = [await anext(states), await anext(states)]
    assert [(s.slot_id, s.version) for s in told] == [("a", 9_999), ("b", 9_999)]
    assert not watch.has_pending
    await states.aclose()


def test_an_older_state_that_comes_late_is_not_told() -> None:
    watch = AvailabilitySubscription([SlotId("a")])
    assert watch.publish(state(SlotId("a"), 5))
    assert not watch.publish(state(SlotId("a"), 5))
    assert not watch.publish(state(SlotId("a"), 4))


async def test_nothing_is_kept_of_a_watch_that_ended(
    slots: SlotRepository, database: Database
) -> None:
    board, before = AvailabilityHub(slots, utc_now), await kept(database)
    async with board.subscribe([before.id]):
        assert board.subscribed_slot_ids == {before.id}
    assert not board.subscribed_slot_ids
