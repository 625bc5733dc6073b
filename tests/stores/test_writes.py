"""Writing what was decided: all of it or nothing, and exactly that."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from bson import ObjectId
from hypothesis import HealthCheck, given, settings

from slotlock.api.embedded import Servers
from slotlock.desk.deciding import decide
from slotlock.domain.booked import Ask, cancel, confirm, move
from slotlock.domain.booking import Claim, Party, book, book_all
from slotlock.domain.bookings import SlotId, Waiting
from slotlock.domain.outcomes import Booked
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.record import BookingStatus
from slotlock.domain.settling import written
from slotlock.domain.slots import Slot
from slotlock.domain.teams import Member, Team
from slotlock.domain.waitlist import join
from slotlock.stores import mongo
from slotlock.stores.answers import KeptAnswer
from slotlock.stores.ids import new_booking_id, new_slot_id, new_team_id, new_wait_id
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slot_documents import adds_only
from slotlock.stores.slots import Look, Slots
from slotlock.stores.teams import Teams
from slotlock.stores.writes import Change, Changes, Writes
from tests.domain.story import PEOPLE, Step, stories, told
from tests.domain.story import slots as any_slot
from tests.domain.test_booking import NOW, slot
from tests.support.kept import keep
from tests.support.processes import database_url

ADA, BEN, EVE = UserId("a" * 24), UserId("b" * 24), UserId("e" * 24)


@dataclass(frozen=True)
class Rooms:
    """A database, and who reads and writes it."""

    database: Database
    slots: Slots
    writes: Writes

    async def kept(self, capacity: int = 1, choice: str | None = None) -> Slot:
        """A new slot in the store."""
        new = slot(capacity, id=new_slot_id(), choice=choice)
        await keep(self.database, new)
        return new

    async def look(self, slot_id: SlotId, *people: UserId, now: datetime = NOW) -> Slot:
        """The slot as a decision finds it."""
        (found,) = await self.slots.look_to_decide(Look(slot_id, now, people, heads=100))
        assert found is not None
        return found

    async def commit(self, *changes: Change, answers: tuple[KeptAnswer, ...] = ()) -> bool:
        """Whether these were written, all together."""
        return await self.writes.commit(Changes(changes, answers))

    async def documents(self, name: str) -> list[Document]:
        """All that a collection holds."""
        return [document async for document in self.database[name].find()]


@pytest.fixture
async def rooms(servers: Servers) -> AsyncIterator[Rooms]:
    """A store that nobody has written to."""
    client, database = mongo.connect(database_url(servers, f"writes{ObjectId()}"))
    try:
        slots = Slots(database)
        await slots.prepare()
        yield Rooms(database, slots, Writes(database))
    finally:
        await client.drop_database(database.name)
        await client.close()


def booking(before: Slot, person: UserId, by: UserId | None = None, hold: bool = False) -> Change:
    """What gives a person a place."""
    party = Party(person, new_booking_id(), by or person, hold, by is not None)
    after, outcome = book(before, party, NOW)
    assert isinstance(outcome, Booked), outcome
    return Change(before, written(before, after, NOW))


def as_kept(after: Slot) -> Slot:
    """What a reader finds of a slot that was written."""
    return replace(
        after, heads=len(after.waiting), known={}, group_counts={}, ended=(), left=(), due=None
    )


async def check_kept(rooms: Rooms, after: Slot) -> None:
    """That what was decided is what is read."""
    roster = await rooms.slots.look_at_roster(after.id)
    assert roster is not None
    assert replace(roster, due=None) == as_kept(after)
    for ended in after.ended:
        assert await rooms.slots.past.find(ended.id) == ended
    turns = {str(d["_id"]): d for d in await rooms.documents("endedWaits")}
    for left in after.left:
        kept = turns[left.waiting.id]
        assert (kept["since"], kept["at"]) == (left.waiting.since, left.at)
        assert (str(kept["by"]) if kept["by"] else None) == left.by
    holds = [b.held_until for b in roster.bookings if b.status is BookingStatus.HELD]
    ends = [until for until in holds if until is not None]
    if ends and after.called_off is None:
        assert roster.due is not None
        assert roster.due <= min(ends)
        assert after.id in await rooms.slots.due(min(ends), 1000)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(first=any_slot, story=stories(12))
async def test_what_is_read_is_what_was_decided_whatever_was_decided(
    rooms: Rooms, first: Slot, story: list[Step]
) -> None:
    new = replace(first, id=new_slot_id())
    await keep(rooms.database, new)
    now = NOW
    for step in story:
        now += timedelta(minutes=step.minutes)
        before = await rooms.look(new.id, *PEOPLE, now=now)
        after = told(before, step, now)
        if after != before:
            assert await rooms.commit(Change(before, after))
            await check_kept(rooms, after)
            if not adds_only(before, after):  # which is known to be written by its booking's id
                assert not await rooms.commit(Change(before, after))


async def test_a_plain_booking_is_added_and_sent_alone_and_anything_else_is_a_pipeline(
    rooms: Rooms,
) -> None:
    new = await rooms.kept(9)
    for hold in (False, True):
        change = booking(await rooms.look(new.id), ADA if hold else BEN, hold=hold)
        assert adds_only(change.before, change.after)
        assert Changes((change,)).one_plain_addition
        assert await rooms.commit(change)
    before = await rooms.look(new.id, ADA)
    after, _ = cancel(before, ask(before), NOW)
    change = Change(before, written(before, after, NOW))
    assert not adds_only(change.before, change.after)
    assert await rooms.commit(change)
    await check_kept(rooms, replace(change.after, bookings=(await roster(rooms, new)).bookings))


async def roster(rooms: Rooms, of: Slot) -> Slot:
    """The slot with all its bookings."""
    found = await rooms.slots.look_at_roster(of.id)
    assert found is not None
    return found


def ask(before: Slot) -> Ask:
    """The first booking at hand, as something that its owner asks about."""
    (first, *_) = before.bookings
    return Ask(first.id, Caller(first.user_id, Role.MEMBER, "session", NOW))


async def test_what_is_booked_and_given_back_in_one_write_is_kept_as_ended(rooms: Rooms) -> None:
    before = await rooms.kept(9)
    made = booking(before, ADA).after
    (ended,) = cancel(made, ask(made), NOW)[0].ended
    after = replace(booking(before, BEN).after, ended=(ended,))
    assert await rooms.commit(Change(before, after))
    await check_kept(rooms, after)


async def test_of_three_slots_with_a_stale_one_nothing_is_written(rooms: Rooms) -> None:
    ids = [(await rooms.kept()).id for _ in range(3)]
    for slot_id in ids:
        assert await rooms.commit(booking(await rooms.look(slot_id), ADA))
    looks = [await rooms.look(slot_id, ADA) for slot_id in ids]
    changes = []
    for before in looks:
        after, _ = cancel(before, ask(before), NOW)
        changes.append(Change(before, written(before, after, NOW)))
    await rooms.database["slots"].update_one({"_id": ObjectId(ids[2])}, {"$inc": {"version": 1}})
    answer = KeptAnswer("key", "print", None, NOW)
    assert not await rooms.commit(*changes, answers=(answer,))
    assert [(await roster(rooms, each)).taken for each in looks] == [1, 1, 1]
    assert [(await roster(rooms, each)).version for each in looks] == [2, 2, 3]
    assert await rooms.documents("endedBookings") == []
    assert await rooms.documents("answers") == []


async def test_a_move_is_written_in_both_slots_or_in_none(rooms: Rooms) -> None:
    one, other = await rooms.kept(), await rooms.kept()
    assert await rooms.commit(booking(one, ADA))
    old, new = await rooms.look(one.id, ADA), await rooms.look(other.id, ADA)
    party = Party(ADA, new_booking_id(), ADA)
    left, taken, _ = move(old, new, ask(old), party, NOW)
    changes = Change(old, written(old, left, NOW)), Change(new, written(new, taken, NOW))
    assert await rooms.commit(booking(other, BEN))
    assert not await rooms.commit(*changes)
    assert [(await roster(rooms, each)).bookings[0].user_id for each in (one, other)] == [ADA, BEN]


async def test_of_two_bookings_of_one_person_in_a_choice_at_once_one_is_written(
    rooms: Rooms,
) -> None:
    for _ in range(3):  # on a new page, and on one that was turned before
        two = [await rooms.kept(choice="week"), await rooms.kept(choice="week")]
        looks = [await rooms.look(each.id, ADA) for each in two]
        made = await asyncio.gather(*(rooms.commit(booking(each, ADA)) for each in looks))
        assert sorted(made) == [False, True]
        taken = [(await roster(rooms, each)).taken for each in two]
        assert taken == [int(each) for each in made]
        await rooms.database["slots"].delete_many({"choice": "week"})


async def test_what_was_decided_on_two_versions_of_a_page_is_not_written_together(
    rooms: Rooms,
) -> None:
    one, other, third = [await rooms.kept(choice=choice) for choice in ("week", "day", "week")]
    early = booking(await rooms.look(one.id, ADA), ADA)
    assert await rooms.commit(booking(await rooms.look(third.id, ADA), ADA))
    late = booking(await rooms.look(other.id, ADA), ADA)
    assert not await rooms.commit(early, late)
    assert (await roster(rooms, one)).taken == 0
    assert await rooms.commit(late)


async def test_bookings_of_different_people_in_a_choice_do_not_meet(rooms: Rooms) -> None:
    two = [await rooms.kept(choice="week"), await rooms.kept(choice="week")]
    looks = [await rooms.look(each.id, ADA, BEN) for each in two]
    changes = [booking(looks[0], ADA), booking(looks[1], BEN)]
    assert await asyncio.gather(*map(rooms.commit, changes)) == [True, True]
    assert (await rooms.look(two[0].id, BEN)).places_of(BEN, NOW) != ()


async def test_of_a_hold_confirmed_and_a_booking_that_counted_on_its_end_one_is_written(
    rooms: Rooms,
) -> None:
    here, there = await rooms.kept(choice="week"), await rooms.kept(choice="week")
    assert await rooms.commit(booking(await rooms.look(here.id, ADA), ADA, hold=True))
    over = NOW + timedelta(minutes=here.hold_minutes)
    mine, other = await rooms.look(here.id, ADA), await rooms.look(there.id, ADA, now=over)
    confirmed, _ = confirm(mine, ask(mine), NOW)
    booked, outcome = book(other, Party(ADA, new_booking_id(), ADA), over)
    assert isinstance(outcome, Booked)
    both = Change(mine, written(mine, confirmed, NOW)), Change(other, written(other, booked, over))
    assert sorted(await asyncio.gather(*map(rooms.commit, both))) == [False, True]


async def test_an_organiser_books_two_of_a_choice_for_somebody_in_one_write(rooms: Rooms) -> None:
    ids = [(await rooms.kept(choice="week")).id for _ in range(2)]
    looks = {slot_id: await rooms.look(slot_id, ADA) for slot_id in ids}
    parties = [Party(ADA, new_booking_id(), EVE, organised=True) for _ in ids]
    claims = [Claim(slot_id, party) for slot_id, party in zip(ids, parties, strict=True)]
    after, _ = book_all(looks, claims, NOW)
    changes = [Change(looks[id_], written(looks[id_], after[id_], NOW)) for id_ in ids]
    assert await rooms.commit(*changes)
    assert [(await roster(rooms, look)).taken for look in looks.values()] == [1, 1]


async def test_who_waits_in_two_of_a_choice_is_given_one_when_both_come_free(rooms: Rooms) -> None:
    ids = [(await rooms.kept(choice="week")).id for _ in range(2)]
    for slot_id in ids:
        assert await rooms.commit(booking(await rooms.look(slot_id), BEN, by=EVE, hold=True))
        before = await rooms.look(slot_id, ADA)
        after, _ = join(before, Waiting(new_wait_id(), slot_id, ADA, NOW), NOW)
        assert await rooms.commit(Change(before, written(before, after, NOW)))
    later = NOW + timedelta(hours=1)
    looks = {slot_id: await rooms.look(slot_id, now=later) for slot_id in ids}
    assert await rooms.commit(*decide(looks, [], later).changes)
    assert sorted([(await rooms.look(slot_id, ADA)).taken for slot_id in ids]) == [0, 1]


async def test_a_booking_that_leans_on_a_team_is_off_when_the_team_changed(rooms: Rooms) -> None:
    teams = Teams(rooms.database)
    team = Team(new_team_id(), "Relay", (Member(ADA, NOW, 0), Member(BEN, NOW, 0)), (), 1, NOW)
    assert await teams.add(team)
    new = await rooms.kept()
    change = booking(new, BEN, by=ADA)
    assert await teams.replace(team, replace(team, name="Sprint", version=2))
    assert not await rooms.writes.commit(Changes((change,), teams=(team.seen,)))
    assert await roster(rooms, new) == new
    now = replace(team, version=2).seen
    assert await rooms.writes.commit(Changes((change,), teams=(now,)))


async def test_when_the_next_hold_runs_out_is_kept_right(rooms: Rooms) -> None:
    new = await rooms.kept(3)
    assert await rooms.slots.due(NOW + timedelta(days=9), 9) == []
    assert await rooms.commit(booking(new, ADA, hold=True))
    due = NOW + timedelta(minutes=new.hold_minutes)
    assert await rooms.slots.due(due - timedelta(milliseconds=1), 9) == []
    assert await rooms.slots.due(due, 9) == [new.id]
    before = await rooms.look(new.id, ADA)
    after, _ = confirm(before, ask(before), NOW)
    assert await rooms.commit(Change(before, written(before, after, NOW)))
    # Earlier than need be, until whoever sweeps finds nothing there and says so.
    await rooms.writes.correct_due(before)
    assert await rooms.slots.due(due, 9) == [new.id]
    await rooms.writes.correct_due(await rooms.look(new.id, now=due))
    assert await rooms.slots.due(due, 9) == []
