"""Every way in which the stores read and write, once each: so that their queries can be judged."""

from dataclasses import replace
from datetime import timedelta

from slotlock.desk.desk import utc_now
from slotlock.domain import joining
from slotlock.domain.booked import Ask, cancel
from slotlock.domain.booking import Party, book
from slotlock.domain.bookings import BookingId, SlotId, Waiting
from slotlock.domain.campaigns import CampaignKept
from slotlock.domain.campaigns import create as create_campaign
from slotlock.domain.listing import Position, SlotFilter, SlotOrder
from slotlock.domain.people import Caller, PeopleFilter, Role, UserId
from slotlock.domain.people_import import Row
from slotlock.domain.people_plan import ImportPlan, plan_import
from slotlock.domain.settling import settle, written
from slotlock.domain.slots import Slot, SlotKind
from slotlock.domain.team_outcomes import TeamKept
from slotlock.domain.teams import TeamSeen
from slotlock.domain.terms import GroupLimit
from slotlock.domain.tickets import RequestLost
from slotlock.domain.waitlist import join, leave
from slotlock.stores.answers import Answers, KeptAnswer
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.guards import CampaignSeen, ResourceSeen
from slotlock.stores.ids import (
    new_booking_id,
    new_campaign_id,
    new_series_id,
    new_slot_id,
    new_team_id,
    new_wait_id,
)
from slotlock.stores.mongo import Database
from slotlock.stores.people_imports import Attempt
from slotlock.stores.resources import Resources
from slotlock.stores.sessions import Sessions, SignIn
from slotlock.stores.slots import Look, Slots
from slotlock.stores.teams import Teams
from slotlock.stores.user_documents import words_of
from slotlock.stores.users import Users
from slotlock.stores.writes import Change, Changes, Writes
from tests.domain.test_booking import slot
from tests.domain.test_campaigns import terms
from tests.support.kept import keep

ADA, BEN, CLEO = (UserId(digit * 24) for digit in "012")


async def keep_slots(database: Database) -> list[SlotId]:
    """Slots of every kind, many enough for an index to matter; every second is one of a choice."""
    await Slots(database).prepare()
    ids = [new_slot_id() for _ in range(60)]
    for number, slot_id in enumerate(ids):
        kind = list(SlotKind)[number % 3]
        start = slot().start + timedelta(hours=number)
        choice = None if number % 2 else f"week {number % 10}"
        times = {"start": start, "end": start + timedelta(hours=1)}
        await keep(database, slot(1, id=slot_id, kind=kind, choice=choice, **times))
    return ids


async def look(slots: Slots, slot_id: SlotId, *booking_ids: BookingId) -> Slot:
    """The slot as a decision finds it."""
    (found,) = await slots.look_to_decide(Look(slot_id, utc_now(), [ADA, BEN], booking_ids))
    assert found is not None
    return found


async def change_slots(slots: Slots, writes: Writes, slot_id: SlotId, team: TeamSeen) -> BookingId:
    """Every way in which slots are written; the id of a booking that ended."""
    now = utc_now()
    before = await look(slots, slot_id)
    booking_id = new_booking_id()
    after, _ = book(before, Party(ADA, booking_id, ADA, hold=True), now)
    answers = (KeptAnswer(str(booking_id), "print", None, now),)
    change = Change(before, written(before, after, now))
    assert await writes.commit(Changes((change,), answers, (team,)))
    for person in (BEN, CLEO):
        before = await look(slots, slot_id)
        after, _ = join(before, Waiting(new_wait_id(), slot_id, person, now), now)
        assert await writes.commit(Changes((Change(before, written(before, after, now)),)))
    before = await look(slots, slot_id, booking_id)
    caller = Caller(ADA, Role.MEMBER, "session", now)
    after, _ = cancel(before, Ask(booking_id, caller), now)
    after, _ = leave(settle(after, now), CLEO, now)
    assert await writes.commit(Changes((Change(before, written(before, after, now)),)))
    await writes.correct_due(await look(slots, slot_id))
    return booking_id


async def use_slots(database: Database) -> None:
    """Every way in which slots are read and written."""
    slots, answers, teams = Slots(database), Answers(database), Teams(database)
    writes = Writes(database)
    ids = await keep_slots(database)
    await answers.prepare()
    now = utc_now()
    team = joining.create(new_team_id(), "Relay", BEN, await teams.number_for(BEN), now)
    assert isinstance(team, TeamKept)
    assert await teams.add(team.team)
    for slot_id in ids[:2]:  # one of a choice, and one of none
        booking_id = await change_slots(slots, writes, slot_id, team.team.seen)
        assert await slots.past.find(booking_id)
        assert await answers.find(str(booking_id))
        position = Position(now, booking_id)
        assert (await slots.past.of_slot(slot_id, 1, None)).items
        await slots.past.of_slot(slot_id, 1, position)
        await slots.look_at_roster(slot_id)
        await slots.line(slot_id)
    # A plain booking that comes too late is looked for among the live and the ended.
    stale = slot(id=ids[1])
    after, _ = book(stale, Party(ADA, new_booking_id(), ADA), now)
    assert not await writes.commit(Changes((Change(stale, written(stale, after, now)),)))
    await slots.due(now, 10)
    assert await slots.of_people([ADA, BEN], now, now)


async def use_answers(answers: Answers) -> None:
    """Every way in which answers are read and written but with what they answer."""
    await answers.prepare()
    now = utc_now()
    kept, lost = (KeptAnswer(str(new_slot_id()), "print", RequestLost(), now) for _ in range(2))
    await answers.keep(kept)
    await answers.keep_all([kept, lost])
    await answers.forget_lost(lost.key_id, lost.fingerprint)
    assert [await answers.find(each.key_id) for each in (kept, lost)] == [kept, None]


async def use_lists(slots: Slots) -> None:
    """Every way in which lists of slots are read."""
    now = utc_now()
    before, position = slot(), Position(slot().start, new_slot_id())
    for order in SlotOrder:
        for wanted, after in [
            (SlotFilter(), None),
            (SlotFilter(), position),
            (SlotFilter(kind=SlotKind.COURSE), position),
            (SlotFilter(starts_from=now, starts_before=before.end), None),
            (SlotFilter(with_places_left=True), None),
            (SlotFilter(text="yog"), None),
        ]:
            await slots.page(wanted, order, 10, after, now, [ADA])
    await slots.page_of(ADA, 10, None, now)
    await slots.page_of(ADA, 10, position, now)


async def use_campaigns(database: Database) -> None:
    """Every way in which campaigns, series and resources are read and written."""
    campaigns, resources = Campaigns(database), Resources(database)
    slots, writes = Slots(database), Writes(database)
    await campaigns.prepare()
    now, strict = utc_now(), terms(most=1, forbid_overlap=True, eligible=(("5a",),))
    kept = create_campaign("Spring", replace(strict, campaign_id=new_campaign_id()))
    assert isinstance(kept, CampaignKept)
    before, series_id = kept.campaign, new_series_id()
    await campaigns.add(before, now)
    assert await campaigns.find(before.id) == before
    limits = (GroupLimit("class:*", 2),)
    first = slot(1, id=new_slot_id(), terms=before.terms, group_limits=limits, resource="Room 5")
    new = (first, replace(first, id=new_slot_id(), resource=None, series_id=series_id))
    for seen in (ResourceSeen("Room 5", 0), ResourceSeen("Room 5", 1)):
        guards = (CampaignSeen(before.id, 1), seen)
        added = tuple(replace(each, id=new_slot_id()) for each in new)
        assert await writes.commit(Changes((), new=added, guards=guards))
    found = await look(slots, added[0].id)
    after, _ = book(found, Party(ADA, new_booking_id(), CLEO, organised=True), now)
    assert await writes.commit(Changes((Change(found, written(found, after, now)),)))
    await look(slots, added[1].id)
    edited = replace(before, terms=replace(before.terms, version=2))
    assert await campaigns.change(before, edited, now)
    assert await campaigns.pending(now + timedelta(minutes=1)) == [edited]
    await campaigns.spread(edited, now)
    await campaigns.warm(edited)
    assert len(await campaigns.slots_of(before.id, now)) == 4
    for position in (None, Position(now, before.id)):
        for unpublished in (True, False):
            await campaigns.page(10, position, unpublished=unpublished)
    assert await resources.look("Room 5", first.start, first.end)
    assert await slots.of_series(series_id, now)
    await slots.waited_for_by([ADA])
    for wanted in (SlotFilter(campaign_id=before.id), SlotFilter(series_id=series_id)):
        await slots.page(wanted, SlotOrder.START_ASC, 10, None, now)


async def use_people(users: Users, sessions: Sessions) -> None:
    """Every way in which people and their sessions are read and written."""
    await users.prepare()
    await sessions.prepare()
    now = utc_now()
    email = f"{new_slot_id()}@slotlock.test"
    user = await users.add("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.with_password(email)
    await users.by_ids([user.id])
    assert [found async for found in users.all()]
    await users.set_role(email, Role.ADMIN, None, now)
    await users.set_groups(user.id, ["5a"], None, now)
    await users.waiting.finish(now + timedelta(minutes=1), now)
    first = SignIn(user.id, "first", now, now + timedelta(days=1), "a browser", "hash")
    opened = await sessions.open(first)
    assert opened is not None
    session_id, _ = opened
    assert await sessions.role_in(session_id)
    assert await sessions.roles_in([session_id])
    assert await sessions.open_ones(user.id, now)
    assert await sessions.rotate(session_id, "first", "second", now + timedelta(days=1))
    assert await users.password_changes.hash_of(user.id) == "hash"
    assert await users.password_changes.change(user.id, session_id, "hash", "new") == 0
    assert await sessions.end_others(user.id, session_id) == 0
    await sessions.end(session_id)
    assert (banned := await users.bans.ban(user, user.id, None, now)) is None  # an admin by now
    (user,) = (await users.by_ids([user.id])).values()
    assert (banned := await users.bans.ban(user, user.id, "Loud", now)) is not None
    assert await users.bans.since(now - timedelta(minutes=1), 10)
    assert await users.bans.unban(banned, user.id, now)


async def use_many_people(users: Users) -> None:
    """Every way in which people come in, are invited and are searched for."""
    now = utc_now()
    number = new_slot_id()
    emails = [f"{number}.{letter}@slotlock.test" for letter in "abc"]
    for groups in (("5a",), ("5b",)):
        seen = await users.imports.look(emails)
        rows = [Row(2, email, "Ada", groups) for email in emails]
        plan = plan_import(rows, seen.by_email, words_of)
        assert isinstance(plan, ImportPlan)
        assert await users.imports.commit(plan, seen, now) is Attempt.WRITTEN
    for group, after in ((None, None), ("5b", None), (None, emails[0]), ("5b", emails[0])):
        people = await users.invitations.invitable(group, list(Role), 10, after)
    hashes = {person.id: f"{person.id} {number}" for person in people}
    kept = await users.invitations.keep(hashes, list(Role), now + timedelta(days=1))
    assert kept == hashes.keys()
    hash_ = hashes[people[0].id]
    assert await users.invitations.find(hash_, now) == people[0]
    assert await users.invitations.use(hash_, "hash", now)
    for wanted in (
        PeopleFilter(),
        PeopleFilter(text="ada"),
        PeopleFilter(text="ada slotl"),
        PeopleFilter(text="!"),
        PeopleFilter(group="5b"),
        PeopleFilter(banned=True),
        PeopleFilter(banned=False),
        PeopleFilter(without_password=True),
        PeopleFilter(without_password=False),
        PeopleFilter("ada", "5b", banned=False, without_password=True),
    ):
        for position in (None, emails[0]):
            await users.page(wanted, 10, position)


async def use_teams(teams: Teams) -> None:
    """Every way in which teams are read and written."""
    await teams.prepare()
    now = utc_now()
    created = joining.create(new_team_id(), "Relay", ADA, await teams.number_for(ADA), now)
    assert isinstance(created, TeamKept)
    before = created.team
    assert await teams.add(before)
    assert await teams.look(before.id) == before
    email = f"{before.id}@slotlock.test"
    number = await teams.number_to(email)
    after = joining.invite(before, ADA, email, (), number, now).team
    assert after is not None
    assert await teams.replace(before, after)
    assert await teams.of_person(ADA) == await teams.invited(email) == (after,)
    assert await teams.shared(ADA, [UserId("1" * 24)]) == (frozenset(), ())
    assert await teams.remove(after)


async def use_everything(database: Database) -> None:
    """All of it."""
    await use_slots(database)
    await use_answers(Answers(database))
    await use_lists(Slots(database))
    await use_campaigns(database)
    await use_people(Users(database), Sessions(database))
    await use_many_people(Users(database))
    await use_teams(Teams(database))
