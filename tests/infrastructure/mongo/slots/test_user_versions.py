"""Bookings that count for each other, in different slots: one version for each user."""

import asyncio
from datetime import timedelta

from slotlock.domain.booking.book import BookingRequest, SlotClaim
from slotlock.domain.booking.changes import confirm
from slotlock.domain.booking.promotion import next_version
from slotlock.domain.booking.slot import Slot
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.change_set import CommitResult, SlotUpdate
from slotlock.services.commands.decisions import decide_batch
from tests.support.domain.builders import HOUR, NOW
from tests.support.domain.decisions import decide_all
from tests.support.stores.slot_store import (
    ADA,
    BEN,
    ORGANIZER,
    SlotStore,
    booking_update,
    decided_update,
    first_booking_command,
)

WRITTEN, CONFLICT = CommitResult.WRITTEN, CommitResult.CONFLICT


async def insert_pair(store: SlotStore) -> list[Slot]:
    """Insert two slots of one choice group."""
    return [await store.insert_slot(choice_group="week") for _ in range(2)]


async def booked_counts(store: SlotStore, slots: list[Slot]) -> list[int]:
    """Return how many places are taken in each slot."""
    return [(await store.load_roster(slot.id)).booked_count for slot in slots]


async def test_one_of_two_concurrent_bookings_of_a_user_in_a_choice_group_is_written(
    store: SlotStore,
) -> None:
    for _ in range(3):  # with a new version document, and with an old one
        pair = await insert_pair(store)
        loaded = [await store.load(slot.id, ADA) for slot in pair]
        results = await asyncio.gather(
            *(store.commit(booking_update(slot, ADA)) for slot in loaded)
        )
        assert set(results) == {WRITTEN, CONFLICT}
        assert await booked_counts(store, pair) == [int(each is WRITTEN) for each in results]
        await store.database["slots"].delete_many({"choiceGroup": "week"})


async def test_decisions_on_two_versions_of_a_user_are_not_written_together(
    store: SlotStore,
) -> None:
    one, third = await insert_pair(store)
    other = await store.insert_slot(choice_group="day")
    early = booking_update(await store.load(one.id, ADA), ADA)
    await store.book(third.id, ADA)
    late = booking_update(await store.load(other.id, ADA), ADA)
    assert await store.commit(early, late) is CONFLICT
    assert await booked_counts(store, [one]) == [0]
    await store.write(late)


async def test_bookings_of_different_users_in_a_choice_group_do_not_conflict(
    store: SlotStore,
) -> None:
    pair = await insert_pair(store)
    loaded = [await store.load(slot.id, ADA, BEN) for slot in pair]
    updates = [booking_update(loaded[0], ADA), booking_update(loaded[1], BEN)]
    assert await asyncio.gather(*map(store.commit, updates)) == [WRITTEN, WRITTEN]
    assert (await store.load(pair[0].id, BEN)).other_bookings_of(BEN, NOW) != ()


async def test_a_hold_is_not_confirmed_with_a_booking_that_relied_on_its_expiry(
    store: SlotStore,
) -> None:
    held_slot, other = await insert_pair(store)
    await store.book(held_slot.id, ADA, hold=True)
    expiry = NOW + timedelta(minutes=held_slot.hold_minutes)
    held = await store.load(held_slot.id, ADA)
    free = await store.load(other.id, ADA, now=expiry)
    updates = [
        decided_update(held, confirm, first_booking_command(held), NOW),
        booking_update(free, ADA, now=expiry),
    ]
    assert set(await asyncio.gather(*map(store.commit, updates))) == {WRITTEN, CONFLICT}


async def test_an_organizer_books_two_slots_of_a_choice_group_for_a_user_in_one_write(
    store: SlotStore,
) -> None:
    pair = await insert_pair(store)
    loaded = {slot.id: await store.load(slot.id, ADA) for slot in pair}
    claims = [
        SlotClaim(slot.id, BookingRequest(ADA, new_booking_id(), ORGANIZER, as_organizer=True))
        for slot in pair
    ]
    after, _ = decide_all(loaded, claims, NOW)
    await store.write(
        *(SlotUpdate(loaded[id_], next_version(loaded[id_], after[id_], NOW)) for id_ in loaded)
    )
    assert await booked_counts(store, pair) == [1, 1]


async def test_a_user_on_two_waitlists_of_a_choice_group_gets_one_place(store: SlotStore) -> None:
    pair = await insert_pair(store)
    for slot in pair:
        before = await store.load(slot.id)
        await store.write(booking_update(before, BEN, by=ORGANIZER, hold=True))
        await store.join(slot.id, ADA)
    loaded = {slot.id: await store.load(slot.id, now=NOW + HOUR) for slot in pair}
    await store.write(*decide_batch(loaded, [], NOW + HOUR).updates)
    assert sorted(await booked_counts(store, pair)) == [0, 1]
