"""An index for every report: what organisers look at scans no collection either."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pymongo import AsyncMongoClient

from slotlock.api.embedded import Servers
from slotlock.desk.desk import utc_now
from slotlock.domain import campaigns as rules
from slotlock.domain.audit import AuditFilter, AuditPosition, Happening
from slotlock.domain.campaigns import Campaign
from slotlock.domain.figures import Interval, Span, span
from slotlock.domain.terms import Terms
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.ids import new_campaign_id, new_slot_id
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slots import Slots
from slotlock.stores.users import Users
from tests.domain.test_booking import slot
from tests.support.every_query import ADA, BEN, keep_slots
from tests.support.kept import keep
from tests.support.plans import Heard, plan_of
from tests.support.processes import database_url

ELIGIBLE: tuple[tuple[tuple[str, ...], ...], ...] = ((), (("5a", "5b"),), (("5a",), ("choir",)))


@pytest.fixture
async def overheard(servers: Servers) -> AsyncIterator[tuple[Database, Heard]]:
    """A database with slots in it, whose commands are heard."""
    heard = Heard()
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, "report_plans"), tz_aware=True, w="majority", event_listeners=[heard]
    )
    try:
        database = client.get_default_database()
        await Campaigns(database).prepare()
        await Users(database).prepare()
        await keep_slots(database)
        heard.commands.clear()
        yield database, heard
    finally:
        await client.close()


async def campaign_for(database: Database, eligible: tuple[tuple[str, ...], ...]) -> Campaign:
    """A campaign for people of these groups, with a slot."""
    now = utc_now()
    opens, closes = now - timedelta(hours=3), now + timedelta(hours=3)
    terms = Terms(new_campaign_id(), 1, True, opens, closes, eligible)
    outcome = rules.create("Project week", terms)
    assert isinstance(outcome, rules.CampaignKept)
    await Campaigns(database).add(outcome.campaign, now)
    await keep(database, replace(slot(), id=new_slot_id(), terms=terms))
    return outcome.campaign


async def assert_none_scans(database: Database, heard: Heard) -> None:
    """Each command that was heard finds what it reads by an index."""
    commands = list(heard.commands)
    assert commands
    for command in commands:
        plan = await plan_of(database, command)
        # Notes come in order from their indexes, however many there are.
        assert command.get("find") != "notes" or "SORT" not in plan, (command, plan)
        assert "IXSCAN" in plan or "IDHACK" in plan or "EOF" in plan, (command, plan)
        assert "COLLSCAN" not in plan, (command, plan)


@pytest.mark.parametrize("eligible", ELIGIBLE)
async def test_figures_are_read_by_indexes(
    overheard: tuple[Database, Heard], eligible: tuple[tuple[str, ...], ...]
) -> None:
    database, heard = overheard
    campaign, now = await campaign_for(database, eligible), utc_now()
    asked = span(Interval.HOUR, None, None, campaign.terms.opens_at, now)
    assert isinstance(asked, Span)
    await Campaigns(database).figures.of(campaign, asked, now)
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
        AuditFilter(campaign_id=campaign.id, by_nobody=True, since=now, before=now),
        AuditFilter(slot_id=slot_id, by=ADA, what=frozenset(Happening)),
        AuditFilter(user_id=ADA, since=now),
        AuditFilter(what=frozenset({Happening.BANNED, Happening.ROLE_SET})),
        AuditFilter(what=frozenset({Happening.BANNED}), by_nobody=True, since=now, before=now),
    ]


async def test_the_log_is_read_by_indexes(overheard: tuple[Database, Heard]) -> None:
    database, heard = overheard
    campaign, now = await campaign_for(database, ()), utc_now()
    for wanted in filters(campaign, now):
        for after in (None, AuditPosition(now, ADA, 1)):
            await Slots(database).audit.page(wanted, 10, after, now)
    await assert_none_scans(database, heard)


@pytest.mark.parametrize("eligible", ELIGIBLE)
@pytest.mark.parametrize("group", [None, "5a"])
async def test_those_without_a_place_are_found_by_indexes(
    overheard: tuple[Database, Heard], eligible: tuple[tuple[str, ...], ...], group: str | None
) -> None:
    database, heard = overheard
    campaign, now = await campaign_for(database, eligible), utc_now()
    for after in (None, "a@slotlock.test"):
        await Campaigns(database).unplaced.page(campaign, group, 10, after, now)
    await assert_none_scans(database, heard)
