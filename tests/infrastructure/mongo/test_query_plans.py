"""Every query uses an index: each command that the repositories send is explained, none scans."""

import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

from bson import ObjectId

from slotlock.domain.audit.audit_log import AUDIT_ACTIONS, AuditFilter, AuditPosition, NoteAction
from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.reports.campaign_reports import Interval, TimeWindow, to_time_window
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.pagination import Position
from slotlock.domain.users.user import Role, UserFilter
from slotlock.infrastructure.mongo.audit.audit_note_repository import note_to_document
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.reads.rosters import open_roster_snapshot
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.stores.all_queries import (
    ADA,
    BEN,
    insert_slots,
    load_for_update,
    run_all_queries,
)
from tests.support.stores.query_plans import (
    CommandRecorder,
    plan_indexes,
    plan_stages,
    query_plan,
    recorded_commands,
    values_of,
)
from tests.support.stores.slots import insert_new_slots, insert_open_campaign

__all__ = ["recorded_commands"]

Recorded = tuple[Database, CommandRecorder]
ELIGIBLE: tuple[tuple[tuple[str, ...], ...], ...] = ((), (("5a", "5b"),), (("5a",), ("choir",)))


async def with_slots(recorded: Recorded) -> tuple[Repositories, CommandRecorder]:
    """Create the indexes, insert slots, and forget the commands that this took."""
    database, recorder = recorded
    repositories = Repositories(database)
    await repositories.indexes.build_missing()
    await insert_slots(database)
    recorder.commands.clear()
    return repositories, recorder


async def assert_uses_indexes(database: Database, commands: Iterable[Document]) -> None:
    """Assert that each command finds what it reads by an index."""
    explained = list(commands)
    assert explained
    for command in explained:
        stages = await plan_stages(database, command)
        # Audit notes come in the order of their indexes, however many there are.
        assert command.get("find") != "audit_notes" or "SORT" not in stages, (command, stages)
        assert {"IXSCAN", "IDHACK", "EOF", "DISTINCT_SCAN"} & stages, (command, stages)
        assert "COLLSCAN" not in stages, (command, stages)


async def test_no_query_scans_a_collection(recorded_commands: Recorded) -> None:
    database, recorder = recorded_commands
    await run_all_queries(database)
    commands = list(recorder.commands)
    collections = {next(iter(command.values())) for command in commands}
    assert {"slots", "ended_bookings", "user_versions", "idempotency_records"} <= collections
    assert {"users", "teams", "sessions", "imports", "campaigns", "resources"} <= collections
    assert len(commands) > 50
    for command in commands:
        stages = await plan_stages(database, command)
        assert "COLLSCAN" not in stages, (command, stages)
        # Only a search for words, and a list by title with a narrow filter, sort their result.
        # Every other list is in the order of its index.
        if "SORT" in stages:
            is_narrow_by_title = "titleKey" in command["sort"] and "hint" not in command
            is_search = "searchWords" in str(command["filter"])
            assert is_search or is_narrow_by_title, (command, stages)


async def test_control_a_query_without_an_index_is_seen_to_scan(
    recorded_commands: Recorded,
) -> None:
    database, recorder = recorded_commands
    await Repositories(database).indexes.build_missing()
    await database["slots"].find_one({"title": "Yoga"})
    assert "COLLSCAN" in await plan_stages(database, recorder.commands[-1])


async def test_the_most_frequent_queries_have_indexes_of_their_own(
    recorded_commands: Recorded,
) -> None:
    database, recorder = recorded_commands
    repositories = Repositories(database)
    slots, now = repositories.slots, utc_now()
    await repositories.indexes.build_missing()
    ids = await insert_slots(database)
    # MongoDB chooses by the data that it finds. The index has to be among those it can choose.
    await load_for_update(slots, ids[0])
    assert "choice_group" in await plan_indexes(database, recorder.commands[-1])
    await slots.find_due(now, 10)
    assert "next_deadline" in await plan_indexes(database, recorder.commands[-1])
    await repositories.scheduled_mails.find_slots(Meeting(now, now), now)
    assert "reminder" in await plan_indexes(database, recorder.commands[-1])
    await slots.find_by_users([ADA], now, now)
    assert "booked_user" in await plan_indexes(database, recorder.commands[-1])
    await repositories.ended_bookings.page_of_slot(ids[0], 10, Position(now, ids[0]))
    assert "slot" in await plan_indexes(database, recorder.commands[-1])


async def insert_campaign_slots(repositories: Repositories, database: Database) -> SlotState:
    """Insert 20 slots of a campaign. Return one of them."""
    campaign_id = new_campaign_id()
    campaign = Campaign(campaign_id, "A campaign", replace(build_terms(), campaign_id=campaign_id))
    slots = [build_slot(id=new_slot_id(), terms=campaign.terms) for _ in range(20)]
    await insert_new_slots(database, *slots)
    return slots[0]


async def read_rosters(database: Database, slot: SlotState) -> None:
    """Read rosters in every way."""
    terms = slot.slot.terms
    assert terms is not None
    for target_id, is_campaign, count in ((terms.campaign_id, True, 20), (slot.id, False, 1)):
        async with open_roster_snapshot(database, target_id, is_campaign=is_campaign) as rosters:
            assert await rosters.count() == count
            assert sum([len(page.slots) async for page in rosters.pages()]) == count
            if is_campaign:
                await rosters.find_users([ADA])


async def read_calendars(repositories: Repositories, slot: SlotState) -> None:
    """Read calendars, and read and write their tokens, in every way."""
    calendars, tokens, now = repositories.calendar_slots, repositories.calendar_tokens, utc_now()
    terms = slot.slot.terms
    assert terms is not None
    for after in (None, slot):
        await calendars.find_by_user(ADA, now - timedelta(days=366), now, after)
        for campaign_id in (None, terms.campaign_id):
            await calendars.find_upcoming(campaign_id, now, after)
            await calendars.find_past(campaign_id, now - timedelta(days=30), now, after)
    token_hash = secrets.token_hex()
    email = f"{token_hash}@slotlock.test"
    user = await repositories.users.insert("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await tokens.save(user.id, token_hash, now)
    assert await tokens.find_created_at(user.id) == now
    assert await tokens.find_user(token_hash) == user
    assert await tokens.delete(user.id)


async def test_no_export_or_calendar_scans_or_sorts(recorded_commands: Recorded) -> None:
    repositories, recorder = await with_slots(recorded_commands)
    database = recorded_commands[0]
    slot = await insert_campaign_slots(repositories, database)
    recorder.commands.clear()
    await read_rosters(database, slot)
    await read_calendars(repositories, slot)
    assert len(recorder.commands) > 15
    for command in recorder.commands:
        stages = await plan_stages(database, command)
        finds_one = command.get("filter", {}).get("_id") is not None
        avoided = {"COLLSCAN"} if finds_one else {"COLLSCAN", "SORT"}
        assert not avoided & stages, (command, stages)


async def test_statistics_and_the_search_for_users_without_a_place_use_indexes(
    recorded_commands: Recorded,
) -> None:
    repositories, recorder = await with_slots(recorded_commands)
    database, now = recorded_commands[0], utc_now()
    for eligible_groups in ELIGIBLE:
        campaign = await insert_open_campaign(database, eligible_groups)
        window = to_time_window(Interval.HOUR, None, None, campaign.terms.opens_at, now)
        assert isinstance(window, TimeWindow)
        recorder.commands.clear()
        await repositories.campaign_statistics.load(campaign, window, now)
        await assert_uses_indexes(database, recorder.commands)
        for group, after in product((None, "5a"), (None, "a@slotlock.test")):
            recorder.commands.clear()
            await repositories.unplaced_users.page(campaign, group, 10, after, now)
            await assert_uses_indexes(database, recorder.commands)


async def test_the_guardians_of_children_are_found_by_indexes(recorded_commands: Recorded) -> None:
    database, recorder = recorded_commands
    repositories, _ = await with_slots(recorded_commands)
    parents: list[Document] = [{"_id": ObjectId(), "email": f"{each}@x.test"} for each in range(2)]
    children = [
        {"email": f"child- {each['email']}", "guardians": [each["_id"]], "groups": ["5a"]}
        for each in parents
    ]
    shown = {"name": "", "role": "MEMBER", "createdAt": utc_now(), "withoutPassword": True}
    await database["users"].insert_many([shown | each for each in (*parents, *children)])
    recorder.commands.clear()
    waiting = UserFilter(group="5a", without_password=True)
    await repositories.users.page(waiting, 10, None)
    assert len(recorder.commands) == 2
    await assert_uses_indexes(database, recorder.commands)
    recorder.commands.clear()
    terms = replace(build_terms(), eligible_groups=(("5a",),))
    found = await repositories.eligible_users.find_without_password(terms, 5, utc_now())
    assert found.users.count == 2
    [command] = recorder.commands
    await assert_uses_indexes(database, [command])
    [union] = [each["$unionWith"] for each in command["pipeline"] if "$unionWith" in each]
    for index in ("guardian", "without_password"):
        of_children = {**command, "pipeline": union["pipeline"], "hint": index}
        await assert_uses_indexes(database, [of_children])
        plan = await query_plan(database, of_children)
        assert list(values_of("strategy", plan["winningPlan"])) == ["IndexedLoopJoin"]


def audit_filters(campaign: Campaign, now: datetime) -> list[AuditFilter]:
    """Return filters of every kind."""
    slot_id = new_slot_id()
    banned = frozenset({NoteAction.BANNED})
    return [
        AuditFilter(campaign_id=campaign.id),
        AuditFilter(slot_id=slot_id),
        AuditFilter(user_id=ADA),
        AuditFilter(by=ADA),
        AuditFilter(campaign_id=campaign.id, user_id=ADA, by=BEN),
        AuditFilter(campaign_id=campaign.id, system_only=True, since=now, before=now),
        AuditFilter(campaign_id=campaign.id, for_others=True),
        AuditFilter(slot_id=slot_id, by=ADA, actions=frozenset(AUDIT_ACTIONS)),
        AuditFilter(user_id=ADA, since=now),
        AuditFilter(actions=banned | {NoteAction.ROLE_SET}),
        AuditFilter(actions=banned, system_only=True, since=now, before=now),
    ]


async def test_the_audit_log_uses_indexes(recorded_commands: Recorded) -> None:
    repositories, recorder = await with_slots(recorded_commands)
    database, now = recorded_commands[0], utc_now()
    campaign = await insert_open_campaign(database, ())
    times = [now - timedelta(minutes=minutes) for minutes in range(30)]
    notes = [AuditNote(at, None, action, ()) for action in NoteAction for at in times]
    await database["audit_notes"].insert_many(map(note_to_document, notes))
    for audit_filter in audit_filters(campaign, now):
        for after in (None, AuditPosition(now, ADA, 1)):
            await repositories.audit_log.page(audit_filter, 10, after, now)
    await assert_uses_indexes(database, recorder.commands)
