"""Bookings that count for each other, in different slots: one version for each user."""

import asyncio
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import MadeAs
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.book import BookingRequest, SlotClaim
from slotlock.domain.booking.rules.booking_changes import confirm
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from slotlock.services.batch_decision import decide_batch
from tests.support.domain.builders import HOUR, NOW
from tests.support.domain.decisions import as_written, decide_all
from tests.support.stores.slot_store import (
    ADA,
    BEN,
    ORGANIZER,
    SlotStore,
    booking_update,
    decided_update,
    first_change_request,
)

WRITTEN, CONFLICT = CommitResult.WRITTEN, CommitResult.CONFLICT


async def insert_pair(store: SlotStore) -> list[SlotState]:
    """Insert two slots of one choice group."""
    return [await store.insert_slot(choice_group="week") for _ in range(2)]


def booking_changes(loaded: LoadedState, user_id: UserId, now: datetime = NOW) -> WriteSet:
    """Return the changes that book a place in the only loaded slot."""
    (before,) = loaded.slots.values()
    update = booking_update(before, user_id, now=now, users=loaded.users)
    return WriteSet((update,), loaded.users)


async def booked_counts(store: SlotStore, slots: list[SlotState]) -> list[int]:
    """Return how many places are taken in each slot."""
    return [(await store.load_roster(slot.id)).booked_count for slot in slots]


async def test_one_of_two_concurrent_bookings_of_a_user_in_a_choice_group_is_written(
    store: SlotStore,
) -> None:
    for _ in range(3):  # with a new version document, and with an old one
        pair = await insert_pair(store)
        loaded = [await store.load_for_update([slot.id], ADA) for slot in pair]
        writer = store.repositories.slot_writer
        results = await asyncio.gather(
            *(writer.commit(booking_changes(each, ADA)) for each in loaded)
        )
        assert set(results) == {WRITTEN, CONFLICT}
        assert await booked_counts(store, pair) == [int(each is WRITTEN) for each in results]
        await store.database["slots"].delete_many({"choiceGroup": "week"})


async def test_a_decision_on_an_old_version_of_a_user_is_not_written(store: SlotStore) -> None:
    one, third = await insert_pair(store)
    other = await store.insert_slot(choice_group="day")
    writer = store.repositories.slot_writer
    early = booking_changes(await store.load_for_update([one.id], ADA), ADA)
    await store.book(third.id, ADA)
    late = booking_changes(await store.load_for_update([other.id], ADA), ADA)
    updates = early.slot_writes + late.slot_writes
    assert await store.commit(*updates, users=early.users) is CONFLICT
    assert await booked_counts(store, [one, other]) == [0, 0]
    assert await writer.commit(late) is WRITTEN


async def test_bookings_of_different_users_in_a_choice_group_do_not_conflict(
    store: SlotStore,
) -> None:
    pair = await insert_pair(store)
    loaded = [await store.load_for_update([slot.id], ADA, BEN) for slot in pair]
    changes = [booking_changes(loaded[0], ADA), booking_changes(loaded[1], BEN)]
    writer = store.repositories.slot_writer
    assert await asyncio.gather(*map(writer.commit, changes)) == [WRITTEN, WRITTEN]
    users = (await store.load_for_update([pair[0].id], BEN)).users
    assert users.other_bookings_for(pair[0].slot, BEN, NOW) != ()


async def test_a_hold_is_not_confirmed_with_a_booking_that_relied_on_its_expiry(
    store: SlotStore,
) -> None:
    held_slot, other = await insert_pair(store)
    await store.book(held_slot.id, ADA, hold=True)
    expiry = NOW + timedelta(minutes=held_slot.slot.hold_minutes)
    loaded = await store.load_for_update([held_slot.id], ADA)
    held, users = loaded.slots[held_slot.id], loaded.users
    confirmed = decided_update(held, confirm, first_change_request(held), NOW, users=users)
    free = await store.load_for_update([other.id], ADA, now=expiry)
    changes = [WriteSet((confirmed,), users), booking_changes(free, ADA, expiry)]
    writer = store.repositories.slot_writer
    assert set(await asyncio.gather(*map(writer.commit, changes))) == {WRITTEN, CONFLICT}


async def test_an_organizer_books_two_slots_of_a_choice_group_for_a_user_in_one_write(
    store: SlotStore,
) -> None:
    pair = await insert_pair(store)
    loaded = await store.load_for_update([slot.id for slot in pair], ADA)
    made_as = MadeAs.ORGANIZER
    claims = [
        SlotClaim(slot.id, BookingRequest(ADA, new_booking_id(), ORGANIZER, made_as=made_as))
        for slot in pair
    ]
    after, _ = decide_all(loaded, claims, NOW)
    updates = [
        SlotWrite(before, as_written(before, after[id_], NOW, loaded.users))
        for id_, before in loaded.slots.items()
    ]
    await store.write(*updates, users=loaded.users)
    assert await booked_counts(store, pair) == [1, 1]


async def test_a_user_on_two_waitlists_of_a_choice_group_gets_one_place(store: SlotStore) -> None:
    pair = await insert_pair(store)
    for slot in pair:
        loaded = await store.load_for_update([slot.id])
        before, users = loaded.slots[slot.id], loaded.users
        hold = booking_update(before, BEN, by=ORGANIZER, hold=True, users=users)
        await store.write(hold, users=users)
        await store.join(slot.id, ADA)
    loaded = await store.load_for_update([slot.id for slot in pair], now=NOW + HOUR)
    decided = decide_batch(loaded, [], NOW + HOUR)
    await store.write(*decided.updates, users=decided.users)
    assert sorted(await booked_counts(store, pair)) == [0, 1]
