"""Writes of one slot: what was decided is stored, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, given, settings

from slotlock.domain.booking.booking import BookingStatus, WaitlistEntry
from slotlock.domain.booking.rules.booking_changes import confirm
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.teams.team import Member, Team
from slotlock.infrastructure.mongo.ids import new_slot_id, new_team_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from tests.support.domain.builders import INSTANT, NOW, with_facts
from tests.support.domain.step_sequences import (
    USER_IDS,
    Step,
    apply_step,
    slot_strategy,
    step_sequences,
)
from tests.support.stores.slot_store import (
    ADA,
    BEN,
    SlotStore,
    booking_update,
    cancel_update,
    decided_update,
    first_change_request,
)
from tests.support.stores.slots import insert_new_slots

WRITTEN, CONFLICT = CommitResult.WRITTEN, CommitResult.CONFLICT


def as_stored(slot: SlotState) -> SlotState:
    """Return the slot as it is read after it was written, but for its next deadline."""
    return replace(
        slot,
        loaded_waitlist=len(slot.waitlist),
        group_counts={},
        change=EMPTY_CHANGE,
        next_deadline=None,
    )


async def assert_stored(store: SlotStore, after: SlotState) -> None:
    """Assert that the decided state is read back, with what ended."""
    roster = await store.load_roster(after.id)
    assert replace(roster, next_deadline=None) == as_stored(after)
    for booking in after.change.ended:
        assert await store.repositories.ended_bookings.find(booking.id) == booking
    documents = {str(each["_id"]): each for each in await store.documents("ended_waitlist_entries")}
    for ended in after.change.ended_entries:
        document = documents[ended.entry.id]
        assert (document["since"], document["at"]) == (ended.entry.since, ended.at)
        assert (str(document["by"]) if document["by"] else None) == ended.by
    if after.slot.cancellation is None:
        await assert_found_by_sweeper(store, roster)


async def assert_found_by_sweeper(store: SlotStore, roster: SlotState) -> None:
    """Assert that the sweeper finds the slot when its next hold expires."""
    held = [each for each in roster.bookings if each.status is BookingStatus.HELD]
    ends = [booking.held_until for booking in held if booking.held_until is not None]
    if ends:
        assert roster.next_deadline is not None
        assert roster.next_deadline <= min(ends)
        assert roster.id in await store.repositories.slots.find_due(min(ends), 1000)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=slot_strategy, steps=step_sequences(12))
async def test_whatever_was_decided_is_read_back_as_it_was_decided(
    store: SlotStore, first: SlotState, steps: Sequence[Step]
) -> None:
    slot = with_facts(first, id=new_slot_id())
    await insert_new_slots(store.database, slot)
    now = NOW
    for step in steps:
        now += timedelta(minutes=step.minutes)
        before = await store.load(slot.id, *USER_IDS, now=now)
        after = apply_step(before, step, now)
        if after != before:
            await store.write(SlotWrite(before, after))
            await assert_stored(store, after)
            # A plain booking is found by its id, so that writing it again counts as written.
            if not after.change.only_adds_bookings:
                assert await store.commit(SlotWrite(before, after)) is CONFLICT


async def test_a_plain_booking_is_a_bulk_write_and_anything_else_a_transaction(
    store: SlotStore,
) -> None:
    slot = await store.insert_slot(9)
    for user_id, hold in ((BEN, False), (ADA, True)):
        update = booking_update(await store.load(slot.id), user_id, hold=hold)
        assert WriteSet((update,)).only_adds_to_one_slot
        await store.write(update)
    update = cancel_update(await store.load(slot.id, ADA))
    assert not WriteSet((update,)).only_adds_to_one_slot
    await store.write(update)
    assert [each.user_id for each in (await store.load_roster(slot.id)).bookings] == [BEN]


async def test_a_booking_that_was_added_and_ended_in_one_write_is_stored_as_ended(
    store: SlotStore,
) -> None:
    before = await store.insert_slot(9)
    booked = booking_update(before, ADA).after
    given_back = cancel_update(booked).after
    after = booking_update(given_back, BEN).after
    await store.write(SlotWrite(before, after))
    await assert_stored(store, after)


async def test_a_waiting_user_is_stored_with_the_groups_of_then(store: SlotStore) -> None:
    slot = await store.insert_slot(1, group_limits=(GroupLimit("5a", 1),))
    await store.book(slot.id, BEN)
    entry = WaitlistEntry(new_waitlist_entry_id(), slot.id, ADA, NOW)
    users = UserContexts({ADA: UserContext(ADA, ("5a",))})
    before = await store.load(slot.id)
    await store.write(decided_update(before, join, entry, NOW, users=users))
    (waiting,) = (await store.load_roster(slot.id)).waitlist
    assert (waiting.user_id, waiting.groups) == (ADA, ("5a",))


async def test_a_booking_that_relies_on_a_team_is_not_written_after_the_team_changed(
    store: SlotStore,
) -> None:
    teams, writer = store.repositories.teams, store.repositories.slot_writer
    team = Team(new_team_id(), "Relay", (Member(ADA, NOW, 0), Member(BEN, NOW, 0)), (), 1, NOW)
    assert await teams.insert(team)
    slot = await store.insert_slot()
    update = booking_update(slot, BEN, by=ADA)
    renamed = replace(team, name="Sprint", version=2)
    assert await teams.update(team, renamed)
    stale = WriteSet((update,), team_versions=(team.snapshot_version,))
    assert await writer.commit(stale) is CONFLICT
    assert await store.load_roster(slot.id) == slot
    current = WriteSet((update,), team_versions=(renamed.snapshot_version,))
    assert await writer.commit(current) is WRITTEN


async def test_the_next_deadline_is_never_later_than_the_end_of_a_hold(store: SlotStore) -> None:
    slot, slots = await store.insert_slot(3), store.repositories.slots
    assert await slots.find_due(NOW + timedelta(days=9), 9) == {}
    await store.book(slot.id, ADA, hold=True)
    deadline = NOW + timedelta(minutes=slot.slot.hold_minutes)
    assert await slots.find_due(deadline - INSTANT, 9) == {}
    assert await slots.find_due(deadline, 9) == {slot.id: deadline}
    held = await store.load(slot.id, ADA)
    await store.write(decided_update(held, confirm, first_change_request(held), NOW))
    # The deadline is earlier than necessary, until the sweeper corrects it. A stale correction,
    # which is decided on an older version, changes nothing.
    await store.repositories.slot_writer.set_next_deadline(held)
    assert await slots.find_due(deadline, 9) == {slot.id: deadline}
    await store.repositories.slot_writer.set_next_deadline(await store.load(slot.id, now=deadline))
    assert await slots.find_due(deadline, 9) == {}
