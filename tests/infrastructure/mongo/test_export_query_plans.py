"""An index for every query of what goes out: rosters, calendars and their addresses."""

import secrets
from dataclasses import replace
from datetime import timedelta

from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.rosters import open_roster_snapshot
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.stores.all_queries import ADA, insert_slots
from tests.support.stores.query_plans import CommandRecorder, plan_stages, recorded_commands
from tests.support.stores.slots import insert_new_slots

__all__ = ["recorded_commands"]


async def campaign_slots(database: Database) -> list[Slot]:
    """Slots of a campaign among others."""
    campaigns = CampaignRepository(database)
    await insert_slots(database)
    await campaigns.create_indexes()
    campaign_id = new_campaign_id()
    campaign = Campaign(campaign_id, "A campaign", replace(build_terms(), campaign_id=campaign_id))
    made = [build_slot(id=new_slot_id(), terms=campaign.terms) for _ in range(20)]
    await insert_new_slots(database, *made)
    return made


async def use_rosters(database: Database, made: Slot) -> None:
    """Every way in which rosters are read."""
    assert made.terms is not None
    for of, campaign, count in ((made.terms.campaign_id, True, 20), (made.id, False, 1)):
        async with open_roster_snapshot(database, of, is_campaign=campaign) as rosters:
            assert await rosters.count() == count
            assert sum([len(page.slots) async for page in rosters.pages()]) == count


async def use_calendars(database: Database, made: Slot) -> None:
    """Every way in which calendars and their addresses are read and written."""
    calendars, users, now = (
        SlotRepository(database).calendar_queries,
        UserRepository(database),
        utc_now(),
    )
    assert made.terms is not None
    await users.create_indexes()
    for after in (None, made):
        await calendars.find_by_user(ADA, now - timedelta(days=366), now, after)
        for campaign_id in (None, made.terms.campaign_id):
            await calendars.find_upcoming(campaign_id, now, after)
            await calendars.find_past(campaign_id, now - timedelta(days=30), now, after)
    hash_ = secrets.token_hex()
    user = await users.insert("Ada", f"{hash_}@slotlock.test", Role.MEMBER, "hash", now)
    assert user is not None
    await users.calendar_tokens.save(user.id, hash_, now)
    assert await users.calendar_tokens.find_created_at(user.id) == now
    assert await users.calendar_tokens.find_user(hash_) == user
    assert await users.calendar_tokens.delete(user.id)


async def test_nothing_that_goes_out_is_found_by_a_scan(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, heard = recorded_commands
    made = (await campaign_slots(database))[0]
    heard.commands.clear()
    await use_rosters(database, made)
    await use_calendars(database, made)
    assert len(heard.commands) > 15
    for command in heard.commands:
        plan = await plan_stages(database, command)
        one = command.get("filter", {}).get("_id") is not None  # which is in order anyway
        assert not ({"COLLSCAN"} if one else {"COLLSCAN", "SORT"}) & plan, (command, plan)
