"""Reads for clients: only the selected parts, and the free places as of now."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot, SelectedSlot
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.slots import slot_repository
from slotlock.infrastructure.mongo.slots.reads import selected_slots
from slotlock.infrastructure.mongo.slots.reads.selected_slots import SlotReadRequest
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from tests.support.domain.builders import NOW, build_caller, build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.domain.selections import EVERYTHING, NOTHING, SELECTIONS, select
from tests.support.stores.query_plans import CommandRecorder, recorded_commands
from tests.support.stores.slot_store import ADA, BEN, CLEO, SlotStore
from tests.support.stores.slots import insert_new_slots

__all__ = ["recorded_commands"]

HOUR = timedelta(hours=1)
# Holds last for five minutes, and the campaign opens after ten.
TIMES = (NOW, NOW + timedelta(minutes=5), NOW + HOUR / 2)
OPENS_AT = NOW + timedelta(minutes=10)
LIMITS = (GroupLimit("class:*", 1),)


async def store_waitlist(store: SlotStore, slot_id: SlotId, *groups: str, **fields: object) -> None:
    """Store waitlist entries of users with these groups, who got no free place yet."""
    entries = [
        {"id": ObjectId(), "user": ObjectId(), "since": NOW, "groups": [group]} for group in groups
    ]
    await store.database["slots"].update_one(
        {"_id": ObjectId(slot_id)}, {"$set": {"waitlist": entries, **fields}}
    )


async def insert_slots(store: SlotStore) -> list[SlotId]:
    """Insert slots with bookings, holds, waitlists, group limits and a campaign."""
    states = [await store.insert_slot(capacity) for capacity in (3, 3, 3, 1)]
    states.append(await store.insert_slot(3, group_limits=LIMITS))
    terms = replace(build_terms(), campaign_id=new_campaign_id(), opens_at=OPENS_AT)
    states.append(await store.insert_slot(3, terms=terms))
    ids = [state.id for state in states]
    _, booked, held, single, limited, upcoming = ids
    await store.book(booked, ADA, BEN)
    await store.book(held, ADA)
    await store.book(held, BEN, hold=True)
    await store.book(single, ADA, hold=True)
    await store.join(single, BEN, CLEO)
    booking = {"id": ObjectId(), "user": ObjectId(ADA), "at": NOW, "groups": ["class:5a"]}
    taken = {"bookings": [booking], "remaining": 2}
    await store_waitlist(store, limited, "class:5a", "class:5b", **taken)
    await store_waitlist(store, upcoming, "", "", nextDeadline=OPENS_AT)
    return ids


async def page(
    slots: SlotRepository, now: datetime, selection: SlotSelection, user_id: UserId | None
) -> Sequence[ReadableSlot]:
    """Return the selected parts of all slots."""
    slot_filter, order = SlotFilter(include_unpublished_campaigns=True), SlotOrder.START_ASC
    users = () if user_id is None else (user_id,)
    return (await slots.page(slot_filter, order, 10, None, now, selection, users)).items


def free_places_of(slot: ReadableSlot, now: datetime) -> int:
    """Return the free places that a client is shown."""
    return slot.remaining if isinstance(slot, SelectedSlot) else as_of(slot, now).remaining


async def free_places(
    slots: SlotRepository, ids: Sequence[SlotId], now: datetime, selection: SlotSelection
) -> list[dict[SlotId, int]]:
    """Return the free places of the slots as Ben reads them one by one, together, and listed."""
    reads = [SlotReadRequest(slot_id, now, selection, (BEN,)) for slot_id in ids]
    one_by_one = [await slots.read(read) for read in reads]
    together = await asyncio.gather(*map(slots.read, reads))
    listed = await page(slots, now, selection, BEN)
    return [
        {each.id: free_places_of(each, now) for each in states if each}
        for states in (one_by_one, together, listed)
    ]


async def places_for_decision(
    slots: SlotRepository, ids: Sequence[SlotId], now: datetime
) -> dict[SlotId, int]:
    """Return the free places of the slots as a decision loads them."""
    found = [await slots.find(SlotQuery(slot_id, now)) for slot_id in ids]
    return {each.id: as_of(each, now).remaining for each in found if each}


@pytest.mark.parametrize("now", TIMES)
async def test_readers_see_the_free_places_that_a_decision_would_find(
    store: SlotStore, now: datetime
) -> None:
    slots, ids = store.repositories.slots, await insert_slots(store)
    expected = await places_for_decision(slots, ids, now)
    for selection in SELECTIONS:
        if selection.remaining:
            assert await free_places(slots, ids, now, selection) == [expected] * 3, selection


async def test_control_the_stored_count_is_not_the_number_of_free_places(
    store: SlotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_repository, "needs_decision_state", lambda *_: False)
    slots, ids = store.repositories.slots, await insert_slots(store)
    expected = await places_for_decision(slots, ids, TIMES[-1])
    stored, *_ = await free_places(slots, ids, TIMES[-1], select("remaining"))
    differing = [slot_id for slot_id in ids if stored[slot_id] != expected[slot_id]]
    assert differing == ids[2:3] + ids[4:]  # an expired hold, a group limit, an open campaign


def parts_of(slot: ReadableSlot | None) -> tuple[object, ...]:
    """Return the users of the loaded bookings and entries, and the length of the waitlist."""
    assert slot is not None
    bookings = [booking.user_id for booking in getattr(slot, "bookings", ())]
    entries = [entry.user_id for entry in getattr(slot, "waitlist", ())]
    return bookings, entries, getattr(slot, "waitlist_length", 0)


async def test_only_selected_parts_of_the_reader_are_loaded(store: SlotStore) -> None:
    slots, ids = store.repositories.slots, await insert_slots(store)
    single, booked = ids[3], ids[1]
    expected: list[tuple[SlotId, UserId | None, SlotSelection, tuple[object, ...]]] = [
        (booked, ADA, NOTHING, ([], [], 0)),
        (booked, ADA, select("my_booking"), ([ADA], [], 0)),
        (booked, CLEO, EVERYTHING, ([], [], 0)),
        (booked, None, EVERYTHING, ([], [], 0)),
        (single, CLEO, select("my_booking", "remaining"), ([], [], 0)),
        (single, CLEO, select("my_waitlist_entry"), ([], [CLEO], 0)),
        (single, CLEO, select("waitlist_length"), ([], [], 2)),
        (single, CLEO, select("booked_by"), ([ADA], [], 0)),
        (single, None, select("waitlist_length", "my_waitlist_entry"), ([], [], 2)),
    ]
    for slot_id, user_id, selection, parts in expected:
        users = () if user_id is None else (user_id,)
        alone = await slots.read(SlotReadRequest(slot_id, NOW, selection, users))
        assert parts_of(alone) == parts, selection
        listed = {each.id: each for each in await page(slots, NOW, selection, user_id)}
        assert listed[slot_id] == alone


async def test_concurrent_reads_return_what_each_alone_would_have_returned(
    store: SlotStore,
) -> None:
    slots, ids = store.repositories.slots, await insert_slots(store)
    reads = [
        SlotReadRequest(slot_id, now, selection, users)
        for slot_id in (*ids, new_slot_id())
        for now in TIMES
        for selection in (
            NOTHING,
            EVERYTHING,
            *(select(part) for part in ("my_booking", "booked_by")),
        )
        for users in ((ADA,), (BEN,), (CLEO,), (CLEO, ADA), ())
    ]
    alone = [await slots.read(read) for read in reads]
    assert await asyncio.gather(*map(slots.read, reads)) == alone


async def test_control_without_the_cut_a_reader_gets_the_rows_of_others(
    store: SlotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selected_slots, "own_rows", lambda rows, _: rows)
    slots, ids = store.repositories.slots, await insert_slots(store)
    reads = [SlotReadRequest(ids[1], NOW, EVERYTHING, users) for users in ((ADA,), (BEN,), ())]
    found = await asyncio.gather(*map(slots.read, reads))
    assert [parts_of(each)[0] for each in found] == [[ADA, BEN]] * 3


async def test_concurrent_reads_are_one_command_without_any_expression(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, recorder = recorded_commands
    states = [build_slot(3, id=new_slot_id()) for _ in range(20)]
    await insert_new_slots(database, *states)
    slots = SlotRepository(database)
    recorder.commands.clear()
    reads = [SlotReadRequest(state.id, NOW, select("remaining"), (ADA,)) for state in states]
    found = await asyncio.gather(*map(slots.read, reads))
    assert [each and each.id for each in found] == [state.id for state in states]
    assert len(await page(slots, NOW, select("remaining"), ADA)) == 10
    assert len(recorder.commands) == 2
    for command in recorder.commands:
        assert set(command["projection"].values()) == {1}


async def test_a_list_loads_again_only_the_slots_whose_deadline_has_come(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, recorder = recorded_commands
    states = [build_slot(3, id=new_slot_id()) for _ in range(8)]
    await insert_new_slots(database, *states)
    due, later = (ObjectId(state.id) for state in states[:2])
    for slot_id, deadline in ((due, NOW), (later, NOW + HOUR)):
        await database["slots"].update_one({"_id": slot_id}, {"$set": {"nextDeadline": deadline}})
    recorder.commands.clear()
    slots = SlotRepository(database)
    for selection, count in ((select("remaining"), 2), (select("my_booking"), 1)):
        assert len(await page(slots, NOW, selection, ADA)) == 8
        assert len(recorder.commands) == count
        if count == 2:
            assert recorder.commands[1]["filter"]["$and"][1] == {"_id": {"$in": [due]}}
        recorder.commands.clear()


async def test_only_selected_facts_are_loaded(store: SlotStore) -> None:
    slots, ids = store.repositories.slots, await insert_slots(store)
    selection = replace(NOTHING, facts=frozenset({"title", "meetings"}))
    listed = {each.id: each for each in await page(slots, NOW, selection, ADA)}
    for slot_id in ids:
        alone = await slots.read(SlotReadRequest(slot_id, NOW, selection, (ADA,)))
        assert alone == listed[slot_id]
        assert isinstance(alone, SelectedSlot)
        assert (alone.title, alone.meetings) == ("Yoga", ())
        for name in ("location", "status", "version", "remaining", "bookings"):
            with pytest.raises(AttributeError):
                getattr(alone, name)


def test_a_selection_has_only_parts_that_its_viewer_sees() -> None:
    member, organizer = build_caller("ada"), build_caller("eve", Role.ORGANIZER)
    assert EVERYTHING.visible_to(None) == select("remaining", "waitlist_length")
    assert EVERYTHING.visible_to(organizer) == EVERYTHING
    assert select("booked_by").visible_to(organizer) == select("booked_by")
    # A member is shown as the booker only of their own booking.
    assert select("booked_by").visible_to(member) == select("my_booking")
    assert NOTHING.visible_to(member) == NOTHING
