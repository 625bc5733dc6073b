"""Every way in which the stores read and write, once each: so that their queries can be judged."""

from dataclasses import replace
from datetime import timedelta

from slotlock.domain.booking.book import BookingRequest, book
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.changes import BookingCommand, cancel
from slotlock.domain.booking.promotion import expire_and_promote, next_version
from slotlock.domain.booking.slot import Slot, SlotKind
from slotlock.domain.booking.tickets import RequestLost
from slotlock.domain.booking.waitlist import join, leave
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.teams import membership
from slotlock.domain.teams.outcomes import TeamSaved
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.import_file import UserRow
from slotlock.domain.users.import_plan import ImportPlan, plan_import
from slotlock.domain.users.user import Caller, Role, UserFilter, UserId
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.mongo.ids import (
    new_booking_id,
    new_campaign_id,
    new_series_id,
    new_slot_id,
    new_team_id,
    new_waitlist_entry_id,
)
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.preconditions import CampaignVersion, ResourceVersion
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.resources import ResourceRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.documents import search_words_of
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import NewSession, SessionRepository
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.domain.decisions import decide
from tests.support.stores.slots import insert_new_slots

ADA, BEN, CLEO = (UserId(digit * 24) for digit in "012")


async def insert_slots(database: Database) -> list[SlotId]:
    """Slots of every kind, many enough for an index to matter; every second is one of a choice."""
    await SlotRepository(database).create_indexes()
    ids = [new_slot_id() for _ in range(60)]
    for number, slot_id in enumerate(ids):
        kind = list(SlotKind)[number % 3]
        start = build_slot().start + timedelta(hours=number)
        choice = None if number % 2 else f"week {number % 10}"
        times = {"start": start, "end": start + timedelta(hours=1)}
        await insert_new_slots(
            database, build_slot(1, id=slot_id, kind=kind, choice_group=choice, **times)
        )
    return ids


async def load_for_update(slots: SlotRepository, slot_id: SlotId, *booking_ids: BookingId) -> Slot:
    """The slot as a decision finds it."""
    (found,) = await slots.find_for_update(SlotQuery(slot_id, utc_now(), [ADA, BEN], booking_ids))
    assert found is not None
    return found


async def write_slots(
    slots: SlotRepository, writes: SlotWriter, slot_id: SlotId, team: TeamVersion
) -> BookingId:
    """Every way in which slots are written; the id of a booking that ended."""
    now = utc_now()
    before = await load_for_update(slots, slot_id)
    booking_id = new_booking_id()
    after, _ = decide(book, before, BookingRequest(ADA, booking_id, ADA, hold=True), now)
    answers = (IdempotencyRecord(str(booking_id), "print", None, now),)
    change = SlotUpdate(before, next_version(before, after, now))
    assert check_written(await writes.commit(ChangeSet((change,), answers, (team,))))
    for person in (BEN, CLEO):
        before = await load_for_update(slots, slot_id)
        after, _ = decide(
            join, before, WaitlistEntry(new_waitlist_entry_id(), slot_id, person, now), now
        )
        assert check_written(
            await writes.commit(ChangeSet((SlotUpdate(before, next_version(before, after, now)),)))
        )
    before = await load_for_update(slots, slot_id, booking_id)
    caller = Caller(ADA, Role.MEMBER, "session", now)
    after, _ = decide(cancel, before, BookingCommand(booking_id, caller), now)
    after, _ = decide(leave, expire_and_promote(after, now), CLEO, now)
    assert check_written(
        await writes.commit(ChangeSet((SlotUpdate(before, next_version(before, after, now)),)))
    )
    await writes.set_next_deadline(await load_for_update(slots, slot_id))
    return booking_id


async def run_slot_queries(database: Database) -> None:
    """Every way in which slots are read and written."""
    slots, answers, teams = (
        SlotRepository(database),
        IdempotencyRecords(database),
        TeamRepository(database),
    )
    writes = SlotWriter(database)
    ids = await insert_slots(database)
    await answers.create_indexes()
    now = utc_now()
    team = membership.create(new_team_id(), "Relay", BEN, await teams.free_member_number(BEN), now)
    assert isinstance(team, TeamSaved)
    assert await teams.insert(team.team)
    for slot_id in ids[:2]:  # one of a choice, and one of none
        booking_id = await write_slots(slots, writes, slot_id, team.team.snapshot_version)
        assert await slots.ended_bookings.find(booking_id)
        assert await answers.find(str(booking_id))
        position = Position(now, booking_id)
        assert (await slots.ended_bookings.page_of_slot(slot_id, 1, None)).items
        await slots.ended_bookings.page_of_slot(slot_id, 1, position)
        await slots.find_with_roster(slot_id)
        await slots.waitlist_ids(slot_id)
    # A plain booking that comes too late is looked for among the live and the ended.
    stale = build_slot(id=ids[1])
    after, _ = decide(book, stale, BookingRequest(ADA, new_booking_id(), ADA), now)
    assert not check_written(
        await writes.commit(ChangeSet((SlotUpdate(stale, next_version(stale, after, now)),)))
    )
    await slots.find_due(now, 10)
    assert await slots.find_by_users([ADA, BEN], now, now)


async def run_idempotency_queries(answers: IdempotencyRecords) -> None:
    """Every way in which answers are read and written but with what they answer."""
    await answers.create_indexes()
    now = utc_now()
    kept, lost = (
        IdempotencyRecord(str(new_slot_id()), "print", RequestLost(), now) for _ in range(2)
    )
    await answers.save(kept)
    await answers.save_all([kept, lost])
    await answers.delete_lost(lost.record_id, lost.request_hash)
    assert [await answers.find(each.record_id) for each in (kept, lost)] == [kept, None]


async def run_list_queries(slots: SlotRepository) -> None:
    """Every way in which lists of slots are read."""
    now = utc_now()
    before, position = build_slot(), Position(build_slot().start, new_slot_id())
    for order in SlotOrder:
        for wanted, after in [
            (SlotFilter(), None),
            (SlotFilter(), position),
            (SlotFilter(kind=SlotKind.COURSE), position),
            (SlotFilter(starts_from=now, starts_before=before.end), None),
            (SlotFilter(only_with_places_left=True), None),
            (SlotFilter(text="yog"), None),
        ]:
            await slots.page(wanted, order, 10, after, now, [ADA])
    await slots.page_of_user(ADA, 10, None, now)
    await slots.page_of_user(ADA, 10, position, now)


async def run_campaign_queries(database: Database) -> None:
    """Every way in which campaigns, series and resources are read and written."""
    campaigns, resources = CampaignRepository(database), ResourceRepository(database)
    slots, writes = SlotRepository(database), SlotWriter(database)
    await campaigns.create_indexes()
    now, strict = (
        utc_now(),
        build_terms(max_bookings=1, forbid_overlap=True, eligible_groups=(("5a",),)),
    )
    campaign_id, series_id = new_campaign_id(), new_series_id()
    before = Campaign(campaign_id, "Spring", replace(strict, campaign_id=campaign_id))
    await campaigns.insert(before, now)
    assert await campaigns.find(before.id) == before
    limits = (GroupLimit("class:*", 2),)
    first = build_slot(
        1, id=new_slot_id(), terms=before.terms, group_limits=limits, resource="Room 5"
    )
    new = (first, replace(first, id=new_slot_id(), resource=None, series_id=series_id))
    for seen in (ResourceVersion("Room 5", 0), ResourceVersion("Room 5", 1)):
        guards = (CampaignVersion(before.id, 1), seen)
        added = tuple(replace(each, id=new_slot_id()) for each in new)
        assert check_written(
            await writes.commit(ChangeSet((), new_slots=added, preconditions=guards))
        )
    found = await load_for_update(slots, added[0].id)
    after, _ = decide(
        book, found, BookingRequest(ADA, new_booking_id(), CLEO, as_organizer=True), now
    )
    assert check_written(
        await writes.commit(ChangeSet((SlotUpdate(found, next_version(found, after, now)),)))
    )
    await load_for_update(slots, added[1].id)
    edited = replace(before, terms=replace(before.terms, version=2))
    assert await campaigns.update(before, edited, now)
    assert await campaigns.find_pending(now + timedelta(minutes=1)) == [edited]
    await campaigns.propagate_terms(edited, now)
    await campaigns.warm_cache(edited)
    assert len(await campaigns.find_slots(before.id, now)) == 4
    for position in (None, Position(now, before.id)):
        for unpublished in (True, False):
            await campaigns.page(10, position, include_unpublished=unpublished)
    assert await resources.find_overlapping("Room 5", first.start, first.end)
    assert await slots.find_by_series(series_id, now)
    await slots.find_waitlisted([ADA])
    for wanted in (SlotFilter(campaign_id=before.id), SlotFilter(series_id=series_id)):
        await slots.page(wanted, SlotOrder.START_ASC, 10, None, now)


async def run_user_queries(users: UserRepository, sessions: SessionRepository) -> None:
    """Every way in which people and their sessions are read and written."""
    await users.create_indexes()
    await sessions.create_indexes()
    now = utc_now()
    email = f"{new_slot_id()}@slotlock.test"
    user = await users.insert("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.find_with_password_hash(email)
    await users.find_many([user.id])
    assert [found async for found in users.find_all()]
    await users.set_role(email, Role.ADMIN, None, now)
    await users.set_groups(user.id, ["5a"], None, now)
    await users.waitlist_groups.sync_pending(now + timedelta(minutes=1), now)
    first = NewSession(user.id, "first", now, now + timedelta(days=1), "a browser", "hash")
    opened = await sessions.open(first)
    assert opened is not None
    session_id, _ = opened
    assert await sessions.find_role(session_id)
    assert await sessions.find_roles([session_id])
    assert await sessions.find_open(user.id, now)
    assert await sessions.rotate_refresh_token(
        session_id, "first", "second", now + timedelta(days=1)
    )
    assert await users.password_writer.find_hash(user.id) == "hash"
    assert await users.password_writer.update(user.id, session_id, "hash", "new") == 0
    assert await sessions.end_others(user.id, session_id) == 0
    await sessions.end(session_id)
    assert (banned := await users.bans.ban(user, user.id, None, now)) is None  # an admin by now
    (user,) = (await users.find_many([user.id])).values()
    assert (banned := await users.bans.ban(user, user.id, "Loud", now)) is not None
    assert await users.bans.find_banned_since(now - timedelta(minutes=1), 10)
    assert await users.bans.unban(banned, user.id, now)


async def run_user_import_queries(users: UserRepository) -> None:
    """Every way in which people come in, are invited and are searched for."""
    now = utc_now()
    number = new_slot_id()
    emails = [f"{number}.{letter}@slotlock.test" for letter in "abc"]
    for groups in (("5a",), ("5b",)):
        seen = await users.imports.load_snapshot(emails)
        rows = [UserRow(2, email, "Ada", groups) for email in emails]
        plan = plan_import(rows, seen.users_by_email, search_words_of)
        assert isinstance(plan, ImportPlan)
        assert await users.imports.commit(plan, seen, now) is ImportAttempt.WRITTEN
    for group, after in ((None, None), ("5b", None), (None, emails[0]), ("5b", emails[0])):
        people = await users.invitations.find_invitable(group, list(Role), 10, after)
    hashes = {person.id: f"{person.id} {number}" for person in people}
    kept = await users.invitations.save(hashes, list(Role), now + timedelta(days=1))
    assert kept == hashes.keys()
    hash_ = hashes[people[0].id]
    assert await users.invitations.find(hash_, now) == people[0]
    assert await users.invitations.redeem(hash_, "hash", now)
    for wanted in (
        UserFilter(),
        UserFilter(text="ada"),
        UserFilter(text="ada slotl"),
        UserFilter(text="!"),
        UserFilter(group="5b"),
        UserFilter(banned=True),
        UserFilter(banned=False),
        UserFilter(without_password=True),
        UserFilter(without_password=False),
        UserFilter("ada", "5b", banned=False, without_password=True),
    ):
        for position in (None, emails[0]):
            await users.page(wanted, 10, position)


async def run_team_queries(teams: TeamRepository) -> None:
    """Every way in which teams are read and written."""
    await teams.create_indexes()
    now = utc_now()
    created = membership.create(
        new_team_id(), "Relay", ADA, await teams.free_member_number(ADA), now
    )
    assert isinstance(created, TeamSaved)
    before = created.team
    assert await teams.insert(before)
    assert await teams.find(before.id) == before
    email = f"{before.id}@slotlock.test"
    number = await teams.free_invitation_number(email)
    after = membership.invite(before, ADA, email, (), number, now).team
    assert after is not None
    assert await teams.update(before, after)
    assert await teams.find_by_user(ADA) == await teams.find_by_invited_email(email) == (after,)
    assert await teams.find_teammates(ADA, [UserId("1" * 24)]) == (frozenset(), ())
    assert await teams.delete(after)


async def run_all_queries(database: Database) -> None:
    """All of it."""
    await run_slot_queries(database)
    await run_idempotency_queries(IdempotencyRecords(database))
    await run_list_queries(SlotRepository(database))
    await run_campaign_queries(database)
    await run_user_queries(UserRepository(database), SessionRepository(database))
    await run_user_import_queries(UserRepository(database))
    await run_team_queries(TeamRepository(database))
