"""Runs every query and every write of the repositories once, so that their plans can be checked."""

from dataclasses import replace
from datetime import timedelta

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.audit.notes import note_campaign_deletion
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.rules.changes import BookingCommand, cancel
from slotlock.domain.booking.rules.waitlist import join, leave
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.teams import membership
from slotlock.domain.teams.outcomes import TeamSaved
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.import_file import UserRow
from slotlock.domain.users.import_plan import ImportPlan, plan_import
from slotlock.domain.users.user import Caller, Role, UserFilter, UserId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.mongo.ids import (
    new_booking_id,
    new_campaign_id,
    new_series_id,
    new_slot_id,
    new_team_id,
    new_waitlist_entry_id,
)
from slotlock.infrastructure.mongo.repositories import Repositories, repositories_on
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.preconditions import CampaignVersion, ResourceVersion
from slotlock.infrastructure.mongo.slots.reads.readings import SlotRead
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from slotlock.infrastructure.mongo.users.sessions import NewSession, Rotation
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot, with_facts
from tests.support.domain.campaign_builders import build_terms
from tests.support.domain.decisions import as_written, decide, expire_and_promote
from tests.support.domain.selections import EVERYTHING, NOTHING
from tests.support.stores.slots import insert_new_slots

ADA, BEN, CLEO = (UserId(digit * 24) for digit in "012")


async def insert_slots(database: Database) -> list[SlotId]:
    """Insert 60 slots of every kind, enough for an index to matter. Every second has a choice."""
    await repositories_on(database).indexes.build_missing()
    ids = [new_slot_id() for _ in range(60)]
    for number, slot_id in enumerate(ids):
        kind = list(SlotKind)[number % 3]
        start = build_slot().slot.start + timedelta(hours=number)
        choice_group = None if number % 2 else f"week {number % 10}"
        times = {"start": start, "end": start + timedelta(hours=1)}
        await insert_new_slots(
            database, build_slot(1, id=slot_id, kind=kind, choice_group=choice_group, **times)
        )
    return ids


async def load_for_update(
    slots: SlotRepository, slot_id: SlotId, *booking_ids: BookingId
) -> tuple[SlotState, UserContexts]:
    """Load a slot, and the contexts of users, as a decision about Ada and Ben does."""
    query = SlotQuery(slot_id, utc_now(), [ADA, BEN], booking_ids)
    loaded = await slots.find_for_update(query)
    return loaded.slots[slot_id], loaded.users


async def write_slot(repositories: Repositories, slot_id: SlotId, team: TeamVersion) -> BookingId:
    """Write a slot in every way. Return the id of a booking that ended."""
    slots, writer, now = repositories.slots, repositories.slot_writer, utc_now()

    async def write(before: SlotState, after: SlotState, users: UserContexts) -> None:
        update = SlotUpdate(before, as_written(before, after, now, users))
        assert check_written(await writer.commit(ChangeSet((update,), users)))

    before, users = await load_for_update(slots, slot_id)
    booking_id = new_booking_id()
    request = BookingRequest(ADA, booking_id, ADA, hold=True)
    after, _ = decide(book, before, request, now, users=users)
    record = IdempotencyRecord(str(booking_id), "request hash", None, now)
    update = SlotUpdate(before, as_written(before, after, now, users))
    assert check_written(await writer.commit(ChangeSet((update,), users, (record,), (team,))))
    for user_id in (BEN, CLEO):
        before, users = await load_for_update(slots, slot_id)
        entry = WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, now)
        await write(before, decide(join, before, entry, now, users=users)[0], users)
    before, users = await load_for_update(slots, slot_id, booking_id)
    caller = Caller(ADA, Role.MEMBER, "session", now)
    after, _ = decide(cancel, before, BookingCommand(booking_id, caller), now)
    promoted = expire_and_promote(after, now, users)
    await write(before, decide(leave, promoted, CLEO, now)[0], users)
    await writer.set_next_deadline((await load_for_update(slots, slot_id))[0])
    return booking_id


async def run_slot_queries(repositories: Repositories, ids: list[SlotId]) -> None:
    """Read and write slots in every way."""
    slots, teams, now = repositories.slots, repositories.teams, utc_now()
    number = await teams.free_member_number(BEN)
    created = membership.create(new_team_id(), "Relay", BEN, number, now)
    assert isinstance(created, TeamSaved)
    assert await teams.insert(created.team)
    for slot_id in ids[:2]:  # one in a choice group, and one in none
        booking_id = await write_slot(repositories, slot_id, created.team.snapshot_version)
        assert await repositories.ended_bookings.find(booking_id)
        assert await repositories.idempotency_records.find(str(booking_id))
        position = Position(now, booking_id)
        assert (await repositories.ended_bookings.page_of_slot(slot_id, 1, None)).items
        await repositories.ended_bookings.page_of_slot(slot_id, 1, position)
        for selection in (NOTHING, EVERYTHING):
            assert await slots.read(SlotRead(slot_id, now, selection, ADA))
        await slots.find_with_roster(slot_id)
        await repositories.waitlists.find_ids(slot_id)
    # The writer searches the live and the ended bookings for a plain one that was not written.
    stale = build_slot(id=ids[1])
    after, _ = decide(book, stale, BookingRequest(ADA, new_booking_id(), ADA), now)
    update = SlotUpdate(stale, as_written(stale, after, now))
    assert not check_written(await repositories.slot_writer.commit(ChangeSet((update,))))
    assert await repositories.ended_bookings.find_slots_with_history(ids[:3]) == set(ids[:2])
    await slots.find_due(now, 10)
    await repositories.list_field_repairs.repair(now)
    assert await slots.find_by_users([ADA, BEN], now, now)
    assert await repositories.waitlists.find_positions([ADA], now) == {ADA: {}}
    await repositories.ended_bookings.find_waitlist_entry(new_waitlist_entry_id())


async def run_idempotency_queries(records: IdempotencyRecords) -> None:
    """Read and write idempotency records in every way but with the changes of their commands."""
    now = utc_now()
    stored, lost = (
        IdempotencyRecord(str(new_slot_id()), "request hash", RequestLost(), now) for _ in range(2)
    )
    await records.save(stored)
    await records.save_all([stored, lost])
    await records.delete_lost(lost.record_id, lost.request_hash)
    assert [await records.find(each.record_id) for each in (stored, lost)] == [stored, None]


async def run_list_queries(slots: SlotRepository) -> None:
    """Read lists of slots in every way."""
    now = utc_now()
    listed = build_slot(id=new_slot_id()).slot
    position = Position(listed.start, new_slot_id())
    for order in SlotOrder:
        after = order.position_of(listed)
        for slot_filter in [
            SlotFilter(),
            SlotFilter(include_past=True),
            SlotFilter(kind=SlotKind.COURSE),
            SlotFilter(starts_from=now, starts_before=listed.end),
            SlotFilter(meets_from=listed.start, meets_before=listed.end),
            SlotFilter(resource="Room 5"),
            SlotFilter(choice_group="week 3"),
            SlotFilter(only_with_places_left=True),
            SlotFilter(bookable_only=True),
            SlotFilter(text="yog"),
            SlotFilter(text="übung 数学"),
        ]:
            await slots.page(slot_filter, order, 10, None, now, NOTHING, ADA)
            await slots.page(slot_filter, order, 10, after, now, EVERYTHING, ADA)
    await slots.count(SlotFilter(), now, 10)
    await slots.count_of_user(ADA, 10)
    await slots.count_of_waiting_user(ADA, 10)
    await slots.page_of_user(ADA, 10, None, now, EVERYTHING)
    await slots.page_of_user(ADA, 10, position, now, NOTHING)
    await slots.page_of_waiting_user(ADA, 10, None, now, EVERYTHING)
    await slots.page_of_waiting_user(ADA, 10, position, now, NOTHING)


async def run_campaign_queries(repositories: Repositories) -> None:
    """Read and write campaigns, series and resources in every way."""
    campaigns, slots, writer = repositories.campaigns, repositories.slots, repositories.slot_writer
    campaign_id, series_id, now = new_campaign_id(), new_series_id(), utc_now()
    terms = build_terms(max_bookings=1, forbid_overlap=True, eligible_groups=(("5a",),))
    before = Campaign(campaign_id, "Spring", replace(terms, campaign_id=campaign_id))
    await campaigns.insert(before, now)
    assert await campaigns.find(before.id) == before
    limits = (GroupLimit("class:*", 2),)
    first = build_slot(
        1, id=new_slot_id(), terms=before.terms, group_limits=limits, resource="Room 5"
    )
    drafts = (first, with_facts(first, resource=None, series_id=series_id))
    assert await repositories.resources.insert(Resource("Room 5"))
    for version in (1, 2):
        preconditions = (CampaignVersion(before.id, 1), ResourceVersion("Room 5", version))
        added = tuple(with_facts(each, id=new_slot_id()) for each in drafts)
        changes = ChangeSet((), new_slots=added, preconditions=preconditions)
        assert check_written(await writer.commit(changes))
    found, users = await load_for_update(slots, added[0].id)
    request = BookingRequest(ADA, new_booking_id(), CLEO, as_organizer=True)
    after, _ = decide(book, found, request, now, users=users)
    update = SlotUpdate(found, as_written(found, after, now, users))
    assert check_written(await writer.commit(ChangeSet((update,), users)))
    await load_for_update(slots, added[1].id)
    edited = replace(before, terms=replace(before.terms, version=2))
    assert await campaigns.update(before, edited, now)
    assert await campaigns.find_pending(now + timedelta(minutes=1)) == [edited]
    await campaigns.propagate_terms(edited, now)
    await campaigns.warm_cache(edited)
    assert len(await campaigns.find_slots(before.id, now)) == 4
    assert await campaigns.has_slots(before.id)
    assert not await campaigns.delete(edited, note_campaign_deletion(edited, ADA, now))
    deleted, _ = await load_for_update(slots, added[1].id)
    assert check_written(await writer.commit(ChangeSet((), deleted_slots=(deleted,))))
    for position in (None, Position(now, before.id)):
        for include_unpublished in (True, False):
            await campaigns.page(10, position, include_unpublished=include_unpublished)
    start, end = first.slot.start, first.slot.end
    assert await repositories.resources.find_overlapping(["Room 5"], start, end)
    assert await repositories.resources.count("", None, 10) == 1
    for text, kind in (("", ResourceKind.OTHER), ("room", None), ("room", ResourceKind.OTHER)):
        assert await repositories.resources.count(text, kind, 10) == 1
        assert (await repositories.resources.page(text, kind, 10, None)).items
    assert await slots.find_by_series(series_id, now)
    for include_hidden in (False, True):
        await slots.count_of_series(series_id, 10, include_hidden=include_hidden)
        for position in (None, Position(now, new_slot_id())):
            await slots.page_of_series(
                series_id, 10, position, now, NOTHING, include_hidden=include_hidden
            )
    await repositories.waitlists.find_waiting([ADA])
    for slot_filter in (SlotFilter(campaign_id=before.id), SlotFilter(series_id=series_id)):
        await slots.page(slot_filter, SlotOrder.START_ASC, 10, None, now, NOTHING)


async def run_user_queries(repositories: Repositories) -> None:
    """Read and write users and their sessions in every way."""
    users, sessions, now = repositories.users, repositories.sessions, utc_now()
    email = f"{new_slot_id()}@slotlock.test"
    user = await users.insert("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.find_with_password_hash(email)
    await users.find_many([user.id])
    assert [found async for found in users.find_all()]
    assert await repositories.administration.set_role(user.id, Role.ADMIN, None, now)
    await users.set_groups(user.id, ["5a"], None, now)
    await repositories.waitlist_groups.sync_pending(now + timedelta(minutes=1), now)
    tomorrow = now + timedelta(days=1)
    opened = await sessions.open(NewSession(user.id, "first", now, tomorrow, "a browser", "hash"))
    assert opened is not None
    session_id, _ = opened
    assert await sessions.find_role(session_id)
    assert await sessions.find_roles([session_id])
    assert await sessions.find_open(user.id, now)
    recently = now - timedelta(seconds=1)
    for new_id in ("second", "unused"):
        rotation = Rotation(new_id, now)
        rotated = await sessions.rotate_refresh_token(
            session_id, "first", rotation, tomorrow, recently, recently
        )
        assert rotated == Rotation("second", now)
        await sessions.mark_answered(session_id, "second", now)
    assert await repositories.password_writer.find_hash(user.id) == "hash"
    assert await repositories.password_writer.update(user.id, session_id, "hash", "new") == 0
    assert await sessions.end_others(user.id, session_id) == 0
    await sessions.end(session_id)
    # The user is an admin by now, so that a ban of the member finds no user.
    assert await repositories.bans.ban(user, user.id, None, now) is None
    (user,) = (await users.find_many([user.id])).values()
    banned = await repositories.bans.ban(user, user.id, "Loud", now)
    assert banned is not None
    assert await repositories.bans.find_banned_since(now - timedelta(minutes=1), 10)
    assert await repositories.bans.unban(banned, user.id, now)
    await users.repair_search_words()


async def run_user_import_queries(repositories: Repositories) -> None:
    """Import, invite and search for users in every way."""
    imports, invitations, now = repositories.user_imports, repositories.invitations, utc_now()
    number = new_slot_id()
    emails = [f"{number}.{letter}@slotlock.test" for letter in "abc"]
    for groups in (("5a",), ("5b",)):
        snapshot = await imports.load_snapshot(emails)
        rows = [UserRow(2, email, "Ada", groups) for email in emails]
        plan = plan_import(rows, snapshot.users_by_email)
        assert isinstance(plan, ImportPlan)
        assert await imports.commit(plan, snapshot, now) is ImportAttempt.WRITTEN
    for group, after in ((None, None), ("5b", None), (None, emails[0]), ("5b", emails[0])):
        invitable = await invitations.find_invitable(group, list(Role), 10, after)
    hashes = {f"{user.id} {number}": user for user in invitable}
    invited_ids = await invitations.save(hashes, list(Role), now + timedelta(days=1))
    assert invited_ids == {user.id for user in invitable}
    token_hash = next(iter(hashes))
    assert await invitations.find(token_hash, now) == invitable[0]
    assert await invitations.redeem(token_hash, "hash", now)
    for user_filter in (
        UserFilter(),
        UserFilter(text="ada"),
        UserFilter(text="ada slotl"),
        UserFilter(text="!"),
        UserFilter(text="übung 数学"),
        UserFilter(group="5b"),
        UserFilter(banned=True),
        UserFilter(banned=False),
        UserFilter(without_password=True),
        UserFilter(without_password=False),
        UserFilter("ada", "5b", banned=False, without_password=True),
    ):
        for position in (None, emails[0]):
            await repositories.users.page(user_filter, 10, position)


async def run_team_queries(teams: TeamRepository) -> None:
    """Read and write teams in every way."""
    now = utc_now()
    number = await teams.free_member_number(ADA)
    created = membership.create(new_team_id(), "Relay", ADA, number, now)
    assert isinstance(created, TeamSaved)
    before = created.team
    assert await teams.insert(before)
    assert await teams.find(before.id) == before
    email = f"{before.id}@slotlock.test"
    invitation_number = await teams.free_invitation_number(email)
    after = membership.invite(before, ADA, email, {}, invitation_number, now).team
    assert after is not None
    assert await teams.update(before, after)
    assert await teams.find_by_user(ADA) == await teams.find_by_invited_email(email) == (after,)
    assert await teams.find_teammates(ADA, [UserId("1" * 24)]) == (frozenset(), ())
    assert await teams.delete(after)


async def run_all_queries(database: Database) -> None:
    """Run every query and every write."""
    repositories = repositories_on(database)
    ids = await insert_slots(database)
    await repositories.indexes.build_missing()
    await run_slot_queries(repositories, ids)
    await run_idempotency_queries(repositories.idempotency_records)
    await run_list_queries(repositories.slots)
    await run_campaign_queries(repositories)
    await run_user_queries(repositories)
    await run_user_import_queries(repositories)
    await run_team_queries(repositories.teams)
