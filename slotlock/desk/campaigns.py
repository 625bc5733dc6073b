"""The organisers' acts on campaigns: create, edit, publish, unpublish; and looking them up."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from slotlock.desk.desk import Desk
from slotlock.domain import campaigns as rules
from slotlock.domain.availability import availability
from slotlock.domain.campaigns import (
    Campaign,
    CampaignBusy,
    CampaignKept,
    CampaignNotFound,
    CampaignOutcome,
)
from slotlock.domain.listing import Page, Position
from slotlock.domain.notes import campaign_note
from slotlock.domain.people import Caller, UserId
from slotlock.domain.refusals import InvalidInput
from slotlock.domain.settling import seen_at
from slotlock.domain.terms import CampaignId, Terms
from slotlock.stores.ids import new_campaign_id

EDIT_TRIES = 20
RETRY_AFTER_MS = 250
# A process that changes a campaign takes less than this to tell its slots.
SPREADS_WITHIN = timedelta(seconds=10)


async def create(
    desk: Desk, name: str, fields: Mapping[str, Any], by: UserId
) -> CampaignKept | InvalidInput:
    """Create a campaign with these terms (names as in `Terms`), published at once or not."""
    outcome = rules.create(name, Terms(campaign_id=new_campaign_id(), version=1, **fields))
    if isinstance(outcome, CampaignKept):
        now = desk.now()
        note = campaign_note(None, outcome.campaign, by, now)
        await desk.campaigns.add(outcome.campaign, now, note)
    return outcome


async def edit(
    desk: Desk, campaign_id: CampaignId, changes: Mapping[str, Any], by: UserId
) -> CampaignOutcome:
    """Change the named fields of a campaign.

    Once this returns, every slot of the campaign has the new terms, and no booking decided on the
    old ones can be written any more.
    """
    for _ in range(EDIT_TRIES):
        before = await desk.campaigns.find(campaign_id)
        if before is None:
            return CampaignNotFound(campaign_id)
        outcome = rules.edit(before, changes)
        if isinstance(outcome, InvalidInput):
            return outcome
        if outcome.campaign == before:  # who wrote it may not have told the slots yet, or have died
            await _spread(desk, before)
            return outcome
        now = desk.now()
        note = campaign_note(before, outcome.campaign, by, now)
        if await desk.campaigns.change(before, outcome.campaign, now, note):
            await _spread(desk, outcome.campaign)
            if outcome.campaign.terms.published and not before.terms.published:
                await desk.campaigns.warm(outcome.campaign)
            return outcome
    return CampaignBusy(RETRY_AFTER_MS)


async def finish_spreading(desk: Desk) -> None:
    """Go on where a process died between a campaign and its slots."""
    for campaign in await desk.campaigns.pending(desk.now() - SPREADS_WITHIN):
        await _spread(desk, campaign)


async def _spread(desk: Desk, campaign: Campaign) -> None:
    now = desk.now()
    await desk.campaigns.spread(campaign, now)
    for slot in await desk.campaigns.slots_of(campaign.id, now):
        state = availability(seen_at(slot, now))
        desk.board.tell(state)
        desk.announcements.publish(state)


async def find(desk: Desk, campaign_id: CampaignId, viewer: Caller | None) -> Campaign | None:
    """A campaign, if there is one for this viewer: unpublished ones are for organisers."""
    campaign = await desk.campaigns.find(campaign_id)
    return campaign if campaign and _visible(campaign, viewer) else None


async def list_campaigns(
    desk: Desk, first: int, after: Position | None, viewer: Caller | None
) -> Page[Campaign]:
    """The next campaigns for this viewer, by their opening."""
    organises = viewer is not None and viewer.organises
    return await desk.campaigns.page(first, after, unpublished=organises)


def _visible(campaign: Campaign, viewer: Caller | None) -> bool:
    return campaign.terms.published or (viewer is not None and viewer.organises)
