"""The organisers' acts on campaigns: create, edit, publish, unpublish; and looking them up."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from slotlock.domain.audit.notes import note_campaign_change
from slotlock.domain.booking.availability import to_availability
from slotlock.domain.booking.promotion import as_of
from slotlock.domain.campaigns import campaign as rules
from slotlock.domain.campaigns.campaign import (
    Campaign,
    CampaignBusy,
    CampaignNotFound,
    CampaignOutcome,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.ids import new_campaign_id
from slotlock.services.container import Services

MAX_EDIT_ATTEMPTS = 20
RETRY_AFTER_MS = 250
# A process that changes a campaign takes less than this to tell its slots.
PROPAGATION_GRACE_PERIOD = timedelta(seconds=10)


async def create(
    services: Services, name: str, fields: Mapping[str, Any], organizer_id: UserId
) -> CampaignSaved | InvalidInput:
    """Create a campaign with these terms (names as in `Terms`), published at once or not."""
    outcome = rules.create(name, CampaignTerms(campaign_id=new_campaign_id(), version=1, **fields))
    if isinstance(outcome, CampaignSaved):
        now = services.now()
        note = note_campaign_change(None, outcome.campaign, organizer_id, now)
        await services.campaigns.insert(outcome.campaign, now, note)
    return outcome


async def edit(
    services: Services, campaign_id: CampaignId, changes: Mapping[str, Any], organizer_id: UserId
) -> CampaignOutcome:
    """Change the named fields of a campaign.

    Once this returns, every slot of the campaign has the new terms, and no booking decided on the
    old ones can be written any more.
    """
    for _ in range(MAX_EDIT_ATTEMPTS):
        before = await services.campaigns.find(campaign_id)
        if before is None:
            return CampaignNotFound(campaign_id)
        outcome = rules.edit(before, changes)
        if isinstance(outcome, InvalidInput):
            return outcome
        if outcome.campaign == before:  # who wrote it may not have told the slots yet, or have died
            await _propagate_terms(services, before)
            return outcome
        now = services.now()
        note = note_campaign_change(before, outcome.campaign, organizer_id, now)
        if await services.campaigns.update(before, outcome.campaign, now, note):
            await _propagate_terms(services, outcome.campaign)
            if outcome.campaign.terms.published and not before.terms.published:
                await services.campaigns.warm_cache(outcome.campaign)
            return outcome
    return CampaignBusy(RETRY_AFTER_MS)


async def resume_propagation(services: Services) -> None:
    """Go on where a process died between a campaign and its slots."""
    for campaign in await services.campaigns.find_pending(
        services.now() - PROPAGATION_GRACE_PERIOD
    ):
        await _propagate_terms(services, campaign)


async def _propagate_terms(services: Services, campaign: Campaign) -> None:
    now = services.now()
    await services.campaigns.propagate_terms(campaign, now)
    for slot in await services.campaigns.find_slots(campaign.id, now):
        state = to_availability(as_of(slot, now))
        services.availability.publish(state)
        services.slot_events.publish(state)


async def find(
    services: Services, campaign_id: CampaignId, viewer: Caller | None
) -> Campaign | None:
    """A campaign, if there is one for this viewer: unpublished ones are for organisers."""
    campaign = await services.campaigns.find(campaign_id)
    return campaign if campaign and _is_visible(campaign, viewer) else None


async def list_campaigns(
    services: Services, first: int, after: Position | None, viewer: Caller | None
) -> Page[Campaign]:
    """The next campaigns for this viewer, by their opening."""
    organises = viewer is not None and viewer.is_organizer
    return await services.campaigns.page(first, after, include_unpublished=organises)


def _is_visible(campaign: Campaign, viewer: Caller | None) -> bool:
    return campaign.terms.published or (viewer is not None and viewer.is_organizer)
