"""An index for every report: what organisers look at scans no collection either."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest
from pymongo import AsyncMongoClient

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.audit.log import AuditAction, AuditFilter, AuditPosition
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.reports.campaign_reports import Interval, TimeWindow, to_time_window
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.stores.all_queries import ADA, BEN, insert_slots
from tests.support.stores.campaigns import insert_open_campaign
from tests.support.stores.query_plans import CommandRecorder, plan_stages

ELIGIBLE: tuple[tuple[tuple[str, ...], ...], ...] = ((), (("5a", "5b"),), (("5a",), ("choir",)))


@pytest.fixture
async def recorded_commands(
    servers: EmbeddedServers,
) -> AsyncIterator[tuple[Database, CommandRecorder]]:
    """A database with slots in it, whose commands are heard."""
    heard = CommandRecorder()
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, "report_plans"), tz_aware=True, w="majority", event_listeners=[heard]
    )
    try:
        database = client.get_default_database()
        await CampaignRepository(database).create_indexes()
        await UserRepository(database).create_indexes()
        await insert_slots(database)
        heard.commands.clear()
        yield database, heard
    finally:
        await client.close()


async def assert_none_scans(database: Database, heard: CommandRecorder) -> None:
    """Each command that was heard finds what it reads by an index."""
    commands = list(heard.commands)
    assert commands
    for command in commands:
        plan = await plan_stages(database, command)
        # Notes come in order from their indexes, however many there are.
        assert command.get("find") != "audit_notes" or "SORT" not in plan, (command, plan)
        assert "IXSCAN" in plan or "IDHACK" in plan or "EOF" in plan, (command, plan)
        assert "COLLSCAN" not in plan, (command, plan)


@pytest.mark.parametrize("eligible", ELIGIBLE)
async def test_figures_are_read_by_indexes(
    recorded_commands: tuple[Database, CommandRecorder], eligible: tuple[tuple[str, ...], ...]
) -> None:
    database, heard = recorded_commands
    campaign, now = await insert_open_campaign(database, eligible), utc_now()
    asked = to_time_window(Interval.HOUR, None, None, campaign.terms.opens_at, now)
    assert isinstance(asked, TimeWindow)
    await CampaignRepository(database).statistics.load(campaign, asked, now)
    await assert_none_scans(database, heard)


def filters(campaign: Campaign, now: datetime) -> list[AuditFilter]:
    """Filters of every kind."""
    slot_id = new_slot_id()
    return [
        AuditFilter(campaign_id=campaign.id),
        AuditFilter(slot_id=slot_id),
        AuditFilter(user_id=ADA),
        AuditFilter(by=ADA),
        AuditFilter(campaign_id=campaign.id, user_id=ADA, by=BEN),
        AuditFilter(campaign_id=campaign.id, system_only=True, since=now, before=now),
        AuditFilter(slot_id=slot_id, by=ADA, actions=frozenset(AuditAction)),
        AuditFilter(user_id=ADA, since=now),
        AuditFilter(actions=frozenset({AuditAction.BANNED, AuditAction.ROLE_SET})),
        AuditFilter(
            actions=frozenset({AuditAction.BANNED}), system_only=True, since=now, before=now
        ),
    ]


async def test_the_log_is_read_by_indexes(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, heard = recorded_commands
    campaign, now = await insert_open_campaign(database, ()), utc_now()
    for wanted in filters(campaign, now):
        for after in (None, AuditPosition(now, ADA, 1)):
            await SlotRepository(database).audit_log.page(wanted, 10, after, now)
    await assert_none_scans(database, heard)


@pytest.mark.parametrize("eligible", ELIGIBLE)
@pytest.mark.parametrize("group", [None, "5a"])
async def test_those_without_a_place_are_found_by_indexes(
    recorded_commands: tuple[Database, CommandRecorder],
    eligible: tuple[tuple[str, ...], ...],
    group: str | None,
) -> None:
    database, heard = recorded_commands
    campaign, now = await insert_open_campaign(database, eligible), utc_now()
    for after in (None, "a@slotlock.test"):
        await CampaignRepository(database).unplaced_users.page(campaign, group, 10, after, now)
    await assert_none_scans(database, heard)
