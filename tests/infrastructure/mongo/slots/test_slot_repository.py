"""Loading parts of a slot: enough for the query, and no more."""

import asyncio
from datetime import timedelta

from slotlock.domain.shared.pagination import Position
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite
from tests.support.domain.builders import NOW
from tests.support.domain.decisions import as_written, expire_and_promote
from tests.support.stores.slot_store import ADA, BEN, CLEO, SlotStore, cancel_update

WAITING_USERS = [UserId(f"{number:024x}") for number in range(5)]
HOUR = timedelta(hours=1)


async def test_concurrent_queries_return_the_slot_that_each_asked_for(store: SlotStore) -> None:
    ids = [(await store.insert_slot()).id for _ in range(20)]
    missing = new_slot_id()
    queries = [SlotQuery(slot_id, NOW, [ADA]) for slot_id in (*ids, missing)]
    found = await asyncio.gather(*map(store.repositories.slots.find, queries))
    assert [slot and slot.id for slot in found] == [*ids, None]


async def test_a_query_loads_the_bookings_of_its_users_and_expired_holds_and_counts_all(
    store: SlotStore,
) -> None:
    slot_id = (await store.insert_slot(9)).id
    await store.book(slot_id, ADA, BEN)
    await store.book(slot_id, CLEO, hold=True)
    found = await store.load(slot_id, BEN)
    assert [booking.user_id for booking in found.bookings] == [BEN]
    assert found.booked_count == 3
    assert found.next_deadline is not None
    later = await store.load(slot_id, now=found.next_deadline)
    assert [booking.user_id for booking in later.bookings] == [CLEO]
    assert (later.booked_count, later.next_deadline) == (3, None)
    assert (await store.load(slot_id)).bookings == ()


async def test_a_query_loads_the_first_of_the_waitlist_and_its_users_and_counts_all(
    store: SlotStore,
) -> None:
    slot_id = (await store.insert_slot()).id
    await store.book(slot_id, ADA)
    await store.join(slot_id, *WAITING_USERS)
    slots = store.repositories.slots
    first, second, _, fourth, _ = WAITING_USERS
    found = await slots.find(SlotQuery(slot_id, NOW, [fourth, second], waitlist_depth=2))
    assert found is not None
    assert [entry.user_id for entry in found.waitlist] == [first, second, fourth]
    assert (found.loaded_waitlist, found.waitlist_length) == (2, 5)


async def test_the_roster_has_the_whole_waitlist_in_order(store: SlotStore) -> None:
    slot_id = (await store.insert_slot()).id
    await store.book(slot_id, ADA)
    await store.join(slot_id, *WAITING_USERS)
    waitlist = (await store.load_roster(slot_id)).waitlist
    assert [entry.user_id for entry in waitlist] == WAITING_USERS
    ids = [entry.id for entry in waitlist]
    assert list(await store.repositories.waitlists.find_ids(slot_id)) == ids
    assert list(await store.repositories.waitlists.find_ids(new_slot_id())) == []


async def test_one_more_entry_of_the_waitlist_is_loaded_for_each_expired_hold(
    store: SlotStore,
) -> None:
    slot_id = (await store.insert_slot(3)).id
    await store.book(slot_id, ADA, BEN, CLEO, hold=True)
    await store.join(slot_id, *WAITING_USERS)
    slots, now = store.repositories.slots, NOW + HOUR
    before = await slots.find(SlotQuery(slot_id, NOW))
    assert before is not None
    assert before.loaded_waitlist == 1
    later = await slots.find(SlotQuery(slot_id, now))
    assert later is not None
    assert (later.loaded_waitlist, later.waitlist_length) == (4, 5)
    promoted = as_written(later, expire_and_promote(later, now), now)
    await store.write(SlotWrite(later, promoted))
    assert (await store.load(slot_id)).booked_count == 3


async def test_ended_bookings_of_a_slot_come_in_pages_in_the_order_they_ended(
    store: SlotStore,
) -> None:
    slot_id = (await store.insert_slot()).id
    ids = []
    for user_id in (ADA, BEN, CLEO):
        await store.book(slot_id, user_id)
        booked = await store.load(slot_id, user_id)
        ids.append(booked.bookings[0].id)
        await store.write(cancel_update(booked))
    ended_bookings = store.repositories.ended_bookings
    first = await ended_bookings.page_of_slot(slot_id, 2, None)
    assert ([booking.id for booking in first.items], first.has_more) == (ids[:2], True)
    last = first.items[-1]
    assert last.ended_at is not None
    rest = await ended_bookings.page_of_slot(slot_id, 2, Position(last.ended_at, last.id))
    assert ([booking.id for booking in rest.items], rest.has_more) == (ids[2:], False)
