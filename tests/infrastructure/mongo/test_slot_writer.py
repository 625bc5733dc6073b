"""Writing what was decided: all of it or nothing, and exactly that."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from bson import ObjectId
from hypothesis import HealthCheck, given, settings

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.book import BookingRequest, SlotClaim, book
from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.booking.changes import BookingCommand, cancel, confirm
from slotlock.domain.booking.history import BookingStatus
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.promotion import next_version
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.waitlist import join
from slotlock.domain.teams.team import Member, Team
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Database, Document, connect
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.ids import (
    new_booking_id,
    new_slot_id,
    new_team_id,
    new_waitlist_entry_id,
)
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.services.commands.decisions import decide_batch
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide, decide_all, decide_move
from tests.support.domain.step_sequences import USER_IDS, Step, apply_step, step_sequences
from tests.support.domain.step_sequences import slot_strategy as any_slot
from tests.support.stores.slots import insert_new_slots

ADA, BEN, EVE = UserId("a" * 24), UserId("b" * 24), UserId("e" * 24)


@dataclass(frozen=True)
class Rooms:
    """A database, and who reads and writes it."""

    database: Database
    slots: SlotRepository
    writes: SlotWriter

    async def kept(self, capacity: int = 1, choice: str | None = None) -> Slot:
        """A new slot in the store."""
        new = build_slot(capacity, id=new_slot_id(), choice_group=choice)
        await insert_new_slots(self.database, new)
        return new

    async def look(self, slot_id: SlotId, *people: UserId, now: datetime = NOW) -> Slot:
        """The slot as a decision finds it."""
        (found,) = await self.slots.find_for_update(
            SlotQuery(slot_id, now, people, waitlist_depth=100)
        )
        assert found is not None
        return found

    async def commit(
        self, *changes: SlotUpdate, answers: tuple[IdempotencyRecord, ...] = ()
    ) -> bool:
        """Whether these were written, all together."""
        return check_written(await self.writes.commit(ChangeSet(changes, answers)))

    async def documents(self, name: str) -> list[Document]:
        """All that a collection holds."""
        return [document async for document in self.database[name].find()]


@pytest.fixture
async def repositories(servers: EmbeddedServers) -> AsyncIterator[Rooms]:
    """A store that nobody has written to."""
    client, database = connect(database_url(servers, f"writes{ObjectId()}"))
    try:
        slots = SlotRepository(database)
        await slots.create_indexes()
        yield Rooms(database, slots, SlotWriter(database))
    finally:
        await client.drop_database(database.name)
        await client.close()


def booking(
    before: Slot, person: UserId, by: UserId | None = None, hold: bool = False
) -> SlotUpdate:
    """What gives a person a place."""
    party = BookingRequest(person, new_booking_id(), by or person, hold, by is not None)
    after, outcome = decide(book, before, party, NOW)
    assert isinstance(outcome, Booked), outcome
    return SlotUpdate(before, next_version(before, after, NOW))


def as_kept(after: Slot) -> Slot:
    """What a reader finds of a slot that was written."""
    return replace(
        after,
        loaded_waitlist=len(after.waitlist),
        user_contexts={},
        group_counts={},
        change=EMPTY_CHANGE,
        next_deadline=None,
    )


async def check_kept(repositories: Rooms, after: Slot) -> None:
    """That what was decided is what is read."""
    roster = await repositories.slots.find_with_roster(after.id)
    assert roster is not None
    assert replace(roster, next_deadline=None) == as_kept(after)
    for ended in after.change.ended:
        assert await repositories.slots.ended_bookings.find(ended.id) == ended
    turns = {str(d["_id"]): d for d in await repositories.documents("ended_waitlist_entries")}
    for left in after.change.ended_entries:
        kept = turns[left.entry.id]
        assert (kept["since"], kept["at"]) == (left.entry.since, left.at)
        assert (str(kept["by"]) if kept["by"] else None) == left.by
    holds = [b.held_until for b in roster.bookings if b.status is BookingStatus.HELD]
    ends = [until for until in holds if until is not None]
    if ends and after.cancellation is None:
        assert roster.next_deadline is not None
        assert roster.next_deadline <= min(ends)
        assert after.id in await repositories.slots.find_due(min(ends), 1000)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=any_slot, story=step_sequences(12))
async def test_what_is_read_is_what_was_decided_whatever_was_decided(
    repositories: Rooms, first: Slot, story: list[Step]
) -> None:
    new = replace(first, id=new_slot_id())
    await insert_new_slots(repositories.database, new)
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        before = await repositories.look(new.id, *USER_IDS, now=now)
        after = apply_step(before, step, now)
        if after != before:
            assert await repositories.commit(SlotUpdate(before, after))
            await check_kept(repositories, after)
            # A plain booking is found by its id, so that writing it again counts as written.
            if not after.change.only_adds_bookings:
                assert not await repositories.commit(SlotUpdate(before, after))


async def test_a_plain_booking_is_added_and_sent_alone_and_anything_else_is_a_pipeline(
    repositories: Rooms,
) -> None:
    new = await repositories.kept(9)
    for hold in (False, True):
        change = booking(await repositories.look(new.id), ADA if hold else BEN, hold=hold)
        assert change.after.change.only_adds_bookings
        assert ChangeSet((change,)).only_adds_to_one_slot
        assert await repositories.commit(change)
    before = await repositories.look(new.id, ADA)
    after, _ = decide(cancel, before, ask(before), NOW)
    change = SlotUpdate(before, next_version(before, after, NOW))
    assert not change.after.change.only_adds_bookings
    assert await repositories.commit(change)
    await check_kept(
        repositories, replace(change.after, bookings=(await roster(repositories, new)).bookings)
    )


async def roster(repositories: Rooms, of: Slot) -> Slot:
    """The slot with all its bookings."""
    found = await repositories.slots.find_with_roster(of.id)
    assert found is not None
    return found


def ask(before: Slot) -> BookingCommand:
    """The first booking at hand, as something that its owner asks about."""
    (first, *_) = before.bookings
    return BookingCommand(first.id, Caller(first.user_id, Role.MEMBER, "session", NOW))


async def test_what_is_booked_and_given_back_in_one_write_is_kept_as_ended(
    repositories: Rooms,
) -> None:
    before = await repositories.kept(9)
    made = booking(before, ADA).after
    given_back, _ = decide(cancel, made, ask(made), NOW)
    after = booking(given_back, BEN).after
    assert await repositories.commit(SlotUpdate(before, after))
    await check_kept(repositories, after)


async def test_of_three_slots_with_a_stale_one_nothing_is_written(repositories: Rooms) -> None:
    ids = [(await repositories.kept()).id for _ in range(3)]
    for slot_id in ids:
        assert await repositories.commit(booking(await repositories.look(slot_id), ADA))
    looks = [await repositories.look(slot_id, ADA) for slot_id in ids]
    changes = []
    for before in looks:
        after, _ = decide(cancel, before, ask(before), NOW)
        changes.append(SlotUpdate(before, next_version(before, after, NOW)))
    await repositories.database["slots"].update_one(
        {"_id": ObjectId(ids[2])}, {"$inc": {"version": 1}}
    )
    answer = IdempotencyRecord("key", "print", None, NOW)
    assert not await repositories.commit(*changes, answers=(answer,))
    assert [(await roster(repositories, each)).booked_count for each in looks] == [1, 1, 1]
    assert [(await roster(repositories, each)).version for each in looks] == [2, 2, 3]
    assert await repositories.documents("ended_bookings") == []
    assert await repositories.documents("idempotency_records") == []


async def test_a_move_is_written_in_both_slots_or_in_none(repositories: Rooms) -> None:
    one, other = await repositories.kept(), await repositories.kept()
    assert await repositories.commit(booking(one, ADA))
    old, new = await repositories.look(one.id, ADA), await repositories.look(other.id, ADA)
    party = BookingRequest(ADA, new_booking_id(), ADA)
    left, taken, _ = decide_move(old, new, ask(old), party, NOW)
    changes = (
        SlotUpdate(old, next_version(old, left, NOW)),
        SlotUpdate(new, next_version(new, taken, NOW)),
    )
    assert await repositories.commit(booking(other, BEN))
    assert not await repositories.commit(*changes)
    assert [(await roster(repositories, each)).bookings[0].user_id for each in (one, other)] == [
        ADA,
        BEN,
    ]


async def test_of_two_bookings_of_one_person_in_a_choice_at_once_one_is_written(
    repositories: Rooms,
) -> None:
    for _ in range(3):  # on a new page, and on one that was turned before
        two = [await repositories.kept(choice="week"), await repositories.kept(choice="week")]
        looks = [await repositories.look(each.id, ADA) for each in two]
        made = await asyncio.gather(*(repositories.commit(booking(each, ADA)) for each in looks))
        assert sorted(made) == [False, True]
        taken = [(await roster(repositories, each)).booked_count for each in two]
        assert taken == [int(each) for each in made]
        await repositories.database["slots"].delete_many({"choiceGroup": "week"})


async def test_what_was_decided_on_two_versions_of_a_page_is_not_written_together(
    repositories: Rooms,
) -> None:
    one, other, third = [
        await repositories.kept(choice=choice) for choice in ("week", "day", "week")
    ]
    early = booking(await repositories.look(one.id, ADA), ADA)
    assert await repositories.commit(booking(await repositories.look(third.id, ADA), ADA))
    late = booking(await repositories.look(other.id, ADA), ADA)
    assert not await repositories.commit(early, late)
    assert (await roster(repositories, one)).booked_count == 0
    assert await repositories.commit(late)


async def test_bookings_of_different_people_in_a_choice_do_not_meet(repositories: Rooms) -> None:
    two = [await repositories.kept(choice="week"), await repositories.kept(choice="week")]
    looks = [await repositories.look(each.id, ADA, BEN) for each in two]
    changes = [booking(looks[0], ADA), booking(looks[1], BEN)]
    assert await asyncio.gather(*map(repositories.commit, changes)) == [True, True]
    assert (await repositories.look(two[0].id, BEN)).other_bookings_of(BEN, NOW) != ()


async def test_of_a_hold_confirmed_and_a_booking_that_counted_on_its_end_one_is_written(
    repositories: Rooms,
) -> None:
    here, there = await repositories.kept(choice="week"), await repositories.kept(choice="week")
    assert await repositories.commit(booking(await repositories.look(here.id, ADA), ADA, hold=True))
    over = NOW + timedelta(minutes=here.hold_minutes)
    mine, other = (
        await repositories.look(here.id, ADA),
        await repositories.look(there.id, ADA, now=over),
    )
    confirmed, _ = decide(confirm, mine, ask(mine), NOW)
    booked, outcome = decide(book, other, BookingRequest(ADA, new_booking_id(), ADA), over)
    assert isinstance(outcome, Booked)
    both = (
        SlotUpdate(mine, next_version(mine, confirmed, NOW)),
        SlotUpdate(other, next_version(other, booked, over)),
    )
    assert sorted(await asyncio.gather(*map(repositories.commit, both))) == [False, True]


async def test_an_organiser_books_two_of_a_choice_for_somebody_in_one_write(
    repositories: Rooms,
) -> None:
    ids = [(await repositories.kept(choice="week")).id for _ in range(2)]
    looks = {slot_id: await repositories.look(slot_id, ADA) for slot_id in ids}
    parties = [BookingRequest(ADA, new_booking_id(), EVE, as_organizer=True) for _ in ids]
    claims = [SlotClaim(slot_id, party) for slot_id, party in zip(ids, parties, strict=True)]
    after, _ = decide_all(looks, claims, NOW)
    changes = [SlotUpdate(looks[id_], next_version(looks[id_], after[id_], NOW)) for id_ in ids]
    assert await repositories.commit(*changes)
    assert [(await roster(repositories, look)).booked_count for look in looks.values()] == [1, 1]


async def test_who_waits_in_two_of_a_choice_is_given_one_when_both_come_free(
    repositories: Rooms,
) -> None:
    ids = [(await repositories.kept(choice="week")).id for _ in range(2)]
    for slot_id in ids:
        assert await repositories.commit(
            booking(await repositories.look(slot_id), BEN, by=EVE, hold=True)
        )
        before = await repositories.look(slot_id, ADA)
        after, _ = decide(
            join, before, WaitlistEntry(new_waitlist_entry_id(), slot_id, ADA, NOW), NOW
        )
        assert await repositories.commit(SlotUpdate(before, next_version(before, after, NOW)))
    later = NOW + timedelta(hours=1)
    looks = {slot_id: await repositories.look(slot_id, now=later) for slot_id in ids}
    assert await repositories.commit(*decide_batch(looks, [], later).updates)
    assert sorted([(await repositories.look(slot_id, ADA)).booked_count for slot_id in ids]) == [
        0,
        1,
    ]


async def test_a_booking_that_leans_on_a_team_is_off_when_the_team_changed(
    repositories: Rooms,
) -> None:
    teams = TeamRepository(repositories.database)
    team = Team(new_team_id(), "Relay", (Member(ADA, NOW, 0), Member(BEN, NOW, 0)), (), 1, NOW)
    assert await teams.insert(team)
    new = await repositories.kept()
    change = booking(new, BEN, by=ADA)
    assert await teams.update(team, replace(team, name="Sprint", version=2))
    assert not check_written(
        await repositories.writes.commit(
            ChangeSet((change,), team_versions=(team.snapshot_version,))
        )
    )
    assert await roster(repositories, new) == new
    now = replace(team, version=2).snapshot_version
    assert check_written(
        await repositories.writes.commit(ChangeSet((change,), team_versions=(now,)))
    )


async def test_when_the_next_hold_runs_out_is_kept_right(repositories: Rooms) -> None:
    new = await repositories.kept(3)
    assert await repositories.slots.find_due(NOW + timedelta(days=9), 9) == []
    assert await repositories.commit(booking(new, ADA, hold=True))
    due = NOW + timedelta(minutes=new.hold_minutes)
    assert await repositories.slots.find_due(due - timedelta(milliseconds=1), 9) == []
    assert await repositories.slots.find_due(due, 9) == [new.id]
    before = await repositories.look(new.id, ADA)
    after, _ = decide(confirm, before, ask(before), NOW)
    assert await repositories.commit(SlotUpdate(before, next_version(before, after, NOW)))
    # Earlier than need be, until whoever sweeps finds nothing there and says so.
    await repositories.writes.set_next_deadline(before)
    assert await repositories.slots.find_due(due, 9) == [new.id]
    await repositories.writes.set_next_deadline(await repositories.look(new.id, now=due))
    assert await repositories.slots.find_due(due, 9) == []
