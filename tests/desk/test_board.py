"""The notice board itself, on a real database, without a network in between."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.availability import AvailabilityBoard, Watch
from slotlock.desk.desk import utc_now
from slotlock.domain.availability import Availability
from slotlock.domain.bookings import SlotId
from slotlock.domain.slots import Slot, SlotStatus
from slotlock.stores import mongo
from slotlock.stores.ids import new_slot_id
from slotlock.stores.mongo import Database
from slotlock.stores.slots import Slots
from slotlock.stores.writes import Change, Changes, Writes
from tests.domain.test_booking import NOW, slot
from tests.support.kept import keep
from tests.support.processes import database_url


@pytest.fixture
async def database(servers: Servers) -> AsyncIterator[Database]:
    """A database of this file's own."""
    client, database = mongo.connect(database_url(servers, "board"))
    try:
        yield database
    finally:
        await client.close()


@pytest.fixture
def slots(database: Database) -> Slots:
    """A store of slots."""
    return Slots(database)


@pytest.fixture
def writes(database: Database, slots: Slots) -> Writes:
    """What changes them."""
    return Writes(database)


async def kept(database: Database) -> Slot:
    """A new slot in the store."""
    new = slot(5, id=new_slot_id())
    await keep(database, new)
    return new


async def change(writes: Writes, before: Slot) -> None:
    """A change that nobody announces."""
    after = replace(before, version=before.version + 1, title="Pilates")
    assert await writes.commit(Changes((Change(before, after),)))


async def test_healing_tells_what_no_announcement_told(
    slots: Slots, writes: Writes, database: Database
) -> None:
    board, before = AvailabilityBoard(slots, utc_now), await kept(database)
    async with board.watching([before.id]) as watch:
        states = watch.states()
        assert (await anext(states)).version == 1
        await change(writes, before)
        await board.heal()
        assert (await anext(states)).version == 2
        await states.aclose()


async def test_control_without_healing_a_change_that_was_not_announced_is_not_told(
    slots: Slots, writes: Writes, database: Database
) -> None:
    board, before = AvailabilityBoard(slots, utc_now), await kept(database)
    async with board.watching([before.id]) as watch:
        states = watch.states()
        await anext(states)
        await change(writes, before)
        assert not watch.has_news


async def test_a_change_between_subscribing_and_reading_is_not_missed(
    slots: Slots, database: Database
) -> None:
    board, before = AvailabilityBoard(slots, utc_now), await kept(database)
    async with board.watching([before.id]) as watch:
        newer = state(before.id, 9)
        board.tell(newer)  # arrived while the older state was being read
        states = watch.states()
        assert await anext(states) == newer
        assert not watch.has_news
        await states.aclose()


def state(slot_id: SlotId, version: int) -> Availability:
    """A state of a slot."""
    return Availability(slot_id, version, 100, 50, SlotStatus.PUBLISHED, NOW)


async def test_a_slow_reader_costs_one_state_a_slot_however_much_happens() -> None:
    ids = [SlotId("a"), SlotId("b")]
    watch = Watch(ids)
    for version in range(10_000):
        for slot_id in ids:
            watch.tell(state(slot_id, version))
    states = watch.states()
    told = [await anext(states), await anext(states)]
    assert [(s.slot_id, s.version) for s in told] == [("a", 9_999), ("b", 9_999)]
    assert not watch.has_news
    await states.aclose()


def test_an_older_state_that_comes_late_is_not_told() -> None:
    watch = Watch([SlotId("a")])
    assert watch.tell(state(SlotId("a"), 5))
    assert not watch.tell(state(SlotId("a"), 5))
    assert not watch.tell(state(SlotId("a"), 4))


async def test_nothing_is_kept_of_a_watch_that_ended(slots: Slots, database: Database) -> None:
    board, before = AvailabilityBoard(slots, utc_now), await kept(database)
    async with board.watching([before.id]):
        assert board.watched == {before.id}
    assert not board.watched
