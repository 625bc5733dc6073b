"""Use cases of campaigns: create, edit, delete, find and list."""

from dataclasses import replace
from datetime import timedelta

from slotlock.domain.audit.audit_notes import note_campaign_change, note_campaign_deletion
from slotlock.domain.booking.availability import to_availability
from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.campaigns.campaign import (
    Campaign,
    CampaignBusy,
    CampaignDeleted,
    CampaignDraft,
    CampaignInUse,
    CampaignNotFound,
    CampaignOutcome,
    CampaignPatch,
    CampaignSaved,
    DeleteCampaignOutcome,
    create_campaign,
    edit_campaign,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.pagination import Page, TimePage
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.client import CommitUnknownError, after_write
from slotlock.infrastructure.mongo.ids import new_campaign_id
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey, fields_of_draft

RETRY_AFTER_MS = 250
# A process needs less than this to copy changed terms to all slots of a campaign.
PROPAGATION_GRACE_PERIOD = timedelta(seconds=10)

CreateCampaignOutcome = CampaignSaved | InvalidInput | KeyReused


async def create(
    services: Services, draft: CampaignDraft, organizer_id: UserId, key_text: str | None = None
) -> CreateCampaignOutcome:
    """Create a campaign, or return the one that the same request with this key created.

    Raises:
        CommitUnknownError: another request of the key is being committed.
    """
    key = IdempotencyKey.for_creation(
        organizer_id, key_text, "createCampaign", fields_of_draft(draft)
    )
    for _ in attempts():
        if stored := await find_created(services, key, CampaignSaved):
            return stored.outcome
        now = services.now()
        outcome = create_campaign(new_campaign_id(), draft, now)
        if isinstance(outcome, InvalidInput):
            return outcome
        note = note_campaign_change(None, outcome.campaign, organizer_id, now)
        record = to_record(key, outcome, now) if key else None
        if await services.campaigns.insert(outcome.campaign, now, note, record):
            return outcome
    raise CommitUnknownError("another request with the key is being committed")


async def edit(
    services: Services, campaign_id: CampaignId, changes: CampaignPatch, organizer_id: UserId
) -> CampaignOutcome:
    """Change fields of a campaign, and copy its terms to all its slots.

    When this returns, no booking that was decided with the old terms can be written any more.
    """
    for _ in attempts():
        before = await services.campaigns.find(campaign_id)
        if before is None:
            return CampaignNotFound(campaign_id)
        outcome = await edit_unless_changed(services, before, changes, organizer_id)
        if outcome is not None:
            return outcome
    return CampaignBusy(RETRY_AFTER_MS)


async def edit_unless_changed(
    services: Services, before: Campaign, changes: CampaignPatch, organizer_id: UserId
) -> CampaignSaved | InvalidInput | None:
    """Do what `edit` does; return None if the campaign has changed since it was read."""
    now = services.now()
    if changes.description is not UNCHANGED:
        stored = await services.descriptions.find_of_campaigns([before.id])
        before = replace(before, description=stored.get(before.id))
    outcome = edit_campaign(before, changes, now)
    if isinstance(outcome, InvalidInput):
        return outcome
    if outcome.campaign == before:
        # The process that wrote these terms may still be copying them, or have crashed.
        await _propagate_terms(services, before)
        return outcome
    note = note_campaign_change(before, outcome.campaign, organizer_id, now)
    if not await services.campaigns.update(before, outcome.campaign, now, note):
        return None
    with after_write():
        await _propagate_terms(services, outcome.campaign)
        if outcome.campaign.terms.published and not before.terms.published:
            await services.campaigns.warm_cache(outcome.campaign)
    return outcome


async def delete(
    services: Services, campaign_id: CampaignId, organizer_id: UserId
) -> DeleteCampaignOutcome:
    """Delete a campaign that is not published and has no slots."""
    for _ in attempts():
        campaign = await services.campaigns.find(campaign_id)
        if campaign is None:
            return CampaignNotFound(campaign_id)
        published = campaign.terms.published
        has_slots = await services.campaigns.has_slots(campaign_id)
        if published or has_slots:
            return CampaignInUse(published, has_slots)
        note = note_campaign_deletion(campaign, organizer_id, services.now())
        if await services.campaigns.delete(campaign, note):
            return CampaignDeleted(campaign_id)
    return CampaignBusy(RETRY_AFTER_MS)


async def resume_propagation(services: Services) -> None:
    """Copy the terms of campaigns whose process crashed before it had copied them to all slots."""
    for campaign in await services.campaigns.find_pending(
        services.now() - PROPAGATION_GRACE_PERIOD
    ):
        await _propagate_terms(services, campaign)


async def _propagate_terms(services: Services, campaign: Campaign) -> None:
    now = services.now()
    await services.campaigns.propagate_terms(campaign, now)
    services.slot_writer.deadline_set.send()  # waiting users may get places now
    for slot in await services.campaigns.find_slots(campaign.id, now):
        state = to_availability(as_of(slot, now))
        services.availability.publish(state)
        services.slot_events.publish(state)


async def find(
    services: Services, campaign_id: CampaignId, viewer: Caller | None
) -> Campaign | None:
    """Return a campaign if the viewer may see it: only organizers see unpublished ones."""
    campaign = await services.campaigns.find(campaign_id)
    return campaign if campaign and _is_visible(campaign, viewer) else None


async def list_campaigns(
    services: Services, page: TimePage, viewer: Caller | None
) -> Page[Campaign]:
    """Return a page of the campaigns that the viewer may see."""
    is_organizer = viewer is not None and viewer.is_organizer
    return await services.campaigns.page(page, include_unpublished=is_organizer)


def _is_visible(campaign: Campaign, viewer: Caller | None) -> bool:
    return campaign.terms.published or (viewer is not None and viewer.is_organizer)
