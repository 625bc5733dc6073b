"""Campaigns in a database, without an app."""

from datetime import timedelta

from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.stores.slots import insert_new_slots


async def insert_open_campaign(
    database: Database, eligible_groups: tuple[tuple[str, ...], ...]
) -> Campaign:
    """Insert an open campaign for users in these groups, with one slot."""
    now = utc_now()
    opens_at, closes_at = now - timedelta(hours=3), now + timedelta(hours=3)
    terms = CampaignTerms(new_campaign_id(), 1, True, opens_at, closes_at, eligible_groups)
    campaign = Campaign(terms.campaign_id, "Project week", terms)
    await CampaignRepository(database).insert(campaign, now)
    await insert_new_slots(database, build_slot(id=new_slot_id(), terms=terms))
    return campaign
