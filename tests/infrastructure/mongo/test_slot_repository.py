"""Slots that are looked at and written together: each by itself, and each caller told their own."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.book import BookingRequest, book
from slotlock.domain.booking.booking import BookingId, WaitlistEntry
from slotlock.domain.booking.changes import BookingCommand, cancel
from slotlock.domain.booking.promotion import expire_and_promote, next_version
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.waitlist import join
from slotlock.domain.shared.pagination import Position
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.slots.change_set import (
    ChangeSet,
    CommitResult,
    SlotUpdate,
    check_written,
)
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.domain.builders import build_slot
from tests.support.domain.decisions import decide

ADA, BEN, CLEO = UserId("a" * 24), UserId("b" * 24), UserId("c" * 24)
EVE = Caller(UserId("e" * 24), Role.ORGANIZER, "session", utc_now())

Rooms = tuple[SlotRepository, SlotWriter]


@pytest.fixture
async def repositories(servers: EmbeddedServers) -> AsyncIterator[Rooms]:
    """A store of slots, and what writes them."""
    client, database = connect(database_url(servers, "slots"))
    try:
        slots = SlotRepository(database)
        yield slots, SlotWriter(database)
    finally:
        await client.close()


async def kept(repositories: Rooms, capacity: int = 1) -> Slot:
    """A new slot in the store."""
    new = build_slot(capacity, id=new_slot_id())
    assert check_written(await repositories[1].commit(ChangeSet((), new_slots=(new,))))
    return new


def booking_by(person: UserId, before: Slot, hold: bool = False) -> ChangeSet:
    """What gives a person a place."""
    now = utc_now()
    after, _ = decide(book, before, BookingRequest(person, new_booking_id(), person, hold), now)
    return ChangeSet((SlotUpdate(before, next_version(before, after, now)),))


def waiting_by(person: UserId, before: Slot) -> ChangeSet:
    """What puts a person in line."""
    now = utc_now()
    after, _ = decide(
        join, before, WaitlistEntry(new_waitlist_entry_id(), before.id, person, now), now
    )
    return ChangeSet((SlotUpdate(before, next_version(before, after, now)),))


def cancelling(booking_id: BookingId, before: Slot) -> ChangeSet:
    """What gives a place back."""
    now = utc_now()
    after, _ = decide(cancel, before, BookingCommand(booking_id, EVE), now)
    return ChangeSet(
        (SlotUpdate(before, next_version(before, expire_and_promote(after, now), now)),)
    )


async def look(
    repositories: Rooms, before: Slot, *people: UserId, now: datetime | None = None
) -> Slot:
    """The slot as it is now."""
    found = await repositories[0].find(SlotQuery(before.id, now or utc_now(), people))
    assert found is not None
    return found


async def test_of_two_decisions_on_one_version_in_one_batch_one_is_written(
    repositories: Rooms,
) -> None:
    before = await kept(repositories)
    ada, ben = booking_by(ADA, before), booking_by(BEN, before)
    made = await asyncio.gather(repositories[1].commit(ada), repositories[1].commit(ben))
    assert list(made) == [CommitResult.WRITTEN, CommitResult.CONFLICT]
    after = await repositories[0].find_with_roster(before.id)
    assert after is not None
    assert after.bookings == ada.slot_updates[0].after.bookings


async def test_a_mismatch_in_a_batch_is_told_to_its_caller_and_to_no_other(
    repositories: Rooms,
) -> None:
    fresh = [await kept(repositories) for _ in range(30)]
    stale = await kept(repositories)
    assert check_written(await repositories[1].commit(booking_by(ADA, stale)))
    wanted = [*fresh[:15], stale, *fresh[15:]]
    made = await asyncio.gather(*(repositories[1].commit(booking_by(BEN, s)) for s in wanted))
    written = [CommitResult.WRITTEN] * 15
    assert made == [*written, CommitResult.CONFLICT, *written]


async def test_a_booking_that_was_written_and_cancelled_before_it_was_told_counts_as_written(
    repositories: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = repositories[1]
    before, stale = await kept(repositories), await kept(repositories)
    assert check_written(await writes.commit(booking_by(ADA, stale)))
    read_back = writes._find_written

    async def cancelled_first(wanted: list[SlotUpdate]) -> object:
        now = await look(repositories, before, BEN)
        assert check_written(await writes.commit(cancelling(now.bookings[0].id, now)))
        return await read_back(wanted)

    monkeypatch.setattr(writes, "_find_written", cancelled_first)
    both = writes.commit(booking_by(BEN, before)), writes.commit(booking_by(BEN, stale))
    results = list(await asyncio.gather(*both))
    assert results == [CommitResult.WRITTEN, CommitResult.CONFLICT]


async def test_looks_that_travel_together_bring_each_caller_their_own_slot(
    repositories: Rooms,
) -> None:
    many = [await kept(repositories) for _ in range(20)]
    missing = new_slot_id()
    ids = [one.id for one in many] + [missing]
    now = utc_now()
    found = await asyncio.gather(*(repositories[0].find(SlotQuery(id_, now, [ADA])) for id_ in ids))
    assert [one and one.id for one in found] == [*ids[:-1], None]


async def test_a_look_shows_whom_it_asks_for_and_who_ran_out_and_counts_all(
    repositories: Rooms,
) -> None:
    before = await kept(repositories, capacity=9)
    for person in (ADA, BEN):
        before = await look(repositories, before)
        assert check_written(await repositories[1].commit(booking_by(person, before)))
    assert check_written(
        await repositories[1].commit(booking_by(CLEO, await look(repositories, before), hold=True))
    )
    now = await look(repositories, before, BEN)
    assert [booking.user_id for booking in now.bookings] == [BEN]
    assert now.booked_count == 3
    assert now.next_deadline is not None
    later = await look(repositories, before, now=now.next_deadline)
    assert [booking.user_id for booking in later.bookings] == [CLEO]
    assert (later.booked_count, later.next_deadline) == (3, None)
    assert (await look(repositories, before)).bookings == ()


async def test_a_look_shows_the_first_in_line_and_whom_it_asks_for_and_counts_all(
    repositories: Rooms,
) -> None:
    before = await kept(repositories)
    assert check_written(await repositories[1].commit(booking_by(ADA, before)))
    line = [UserId(f"{number:024x}") for number in range(5)]
    for person in line:
        assert check_written(
            await repositories[1].commit(
                waiting_by(person, await look(repositories, before, person))
            )
        )
    found = await repositories[0].find(
        SlotQuery(before.id, utc_now(), [line[3], line[1]], waitlist_depth=2)
    )
    assert found is not None
    assert [waiting.user_id for waiting in found.waitlist] == [line[0], line[1], line[3]]
    assert (found.loaded_waitlist, found.waitlist_length) == (2, 5)
    roster = await repositories[0].find_with_roster(before.id)
    assert roster is not None
    ids = [waiting.id for waiting in roster.waitlist]
    assert [waiting.user_id for waiting in roster.waitlist] == line
    assert list(await repositories[0].waitlist_ids(before.id)) == ids
    assert list(await repositories[0].waitlist_ids(new_slot_id())) == []


async def test_as_many_more_of_the_line_are_read_as_holds_ran_out(repositories: Rooms) -> None:
    before = await kept(repositories, capacity=3)
    for person in (ADA, BEN, CLEO):
        assert check_written(
            await repositories[1].commit(
                booking_by(person, await look(repositories, before), hold=True)
            )
        )
    for number in range(5):
        person = UserId(f"{number:024x}")
        assert check_written(
            await repositories[1].commit(
                waiting_by(person, await look(repositories, before, person))
            )
        )
    assert (await look(repositories, before)).loaded_waitlist == 1
    later = await look(repositories, before, now=utc_now() + timedelta(hours=1))
    assert (later.loaded_waitlist, later.waitlist_length) == (4, 5)
    now = utc_now() + timedelta(hours=1)
    after = expire_and_promote(later, now)
    assert check_written(
        await repositories[1].commit(
            ChangeSet((SlotUpdate(later, next_version(later, after, now)),))
        )
    )
    assert (await look(repositories, before)).booked_count == 3


async def test_the_ended_bookings_of_a_slot_come_in_pages_in_the_order_they_ended(
    repositories: Rooms,
) -> None:
    before = await kept(repositories)
    ids = []
    for person in (ADA, BEN, CLEO):
        assert check_written(
            await repositories[1].commit(booking_by(person, await look(repositories, before)))
        )
        now = await look(repositories, before, person)
        ids.append(now.bookings[0].id)
        assert check_written(await repositories[1].commit(cancelling(ids[-1], now)))
    first = await repositories[0].ended_bookings.page_of_slot(before.id, 2, None)
    assert ([booking.id for booking in first.items], first.has_more) == (ids[:2], True)
    last = first.items[-1]
    assert last.ended_at is not None
    rest = await repositories[0].ended_bookings.page_of_slot(
        before.id, 2, Position(last.ended_at, last.id)
    )
    assert ([booking.id for booking in rest.items], rest.has_more) == (ids[2:], False)
