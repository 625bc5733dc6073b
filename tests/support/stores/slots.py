"""Slots that are stored before a test begins."""

from dataclasses import replace
from datetime import timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite, WriteSet, check_written
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.container import Services, utc_now
from tests.support.domain.builders import build_slot, with_facts


async def insert_new_slots(database: Database, *slots: SlotState) -> None:
    """Insert slots without bookings."""
    assert check_written(await SlotWriter(database).commit(WriteSet((), new_slots=slots)))


async def insert_slot(services: Services, capacity: int = 5, **facts: object) -> SlotId:
    """Insert a slot without bookings and return its id."""
    slot = build_slot(capacity, id=new_slot_id(), **facts)
    assert check_written(await services.slot_writer.commit(WriteSet((), new_slots=(slot,))))
    return slot.id


async def edit_silently(database: Database, slot: SlotState) -> SlotState:
    """Change a slot without publishing it; return the new version."""
    renamed = with_facts(slot, title="Pilates")
    after = replace(renamed, version=slot.version + 1)
    assert check_written(await SlotWriter(database).commit(WriteSet((SlotWrite(slot, after),))))
    return after


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
