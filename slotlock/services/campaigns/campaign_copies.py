"""Copying a campaign with its slots to later dates, in one write."""

import secrets
from dataclasses import replace

from slotlock.domain.audit.audit_notes import note_campaign_change
from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.campaign_copies.campaign_copy_outcomes import (
    MAX_COPIED_SLOTS,
    CampaignCopy,
    CampaignCopyPreview,
    CampaignNotCopied,
    CampaignTooLarge,
    CopyProblems,
)
from slotlock.domain.campaign_copies.copying import (
    CopyNames,
    CopyPlan,
    CopyRequest,
    CopySource,
    copied_choice_group,
    draft_problems,
    is_too_large,
    plan_copy,
    resource_problems,
)
from slotlock.domain.campaigns.campaign import CampaignBusy, CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_series_id, new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import (
    NewCampaign,
    Precondition,
    WriteSet,
    check_written,
)
from slotlock.services.campaigns.campaigns import RETRY_AFTER_MS
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slots.editing import creation_notes, resource_rivals

CopyCampaignRefusal = (
    CampaignNotCopied
    | CampaignTooLarge
    | CampaignNotFound
    | CampaignBusy
    | InvalidInput
    | KeyReused
)
CopyCampaignOutcome = CampaignCopy | CampaignCopyPreview | CopyCampaignRefusal


async def preview(
    services: Services, request: CopyRequest
) -> CampaignCopyPreview | CampaignTooLarge | CampaignNotFound | InvalidInput:
    """Return what a request would create, and create nothing."""
    checked = await _check(services, request)
    if not isinstance(checked, _CheckedCopy):
        return checked
    return CampaignCopyPreview(checked.plan.copy, checked.problems, checked.draft_problems)


async def copy(
    services: Services, request: CopyRequest, organizer_id: UserId, key_text: str | None = None
) -> CampaignCopy | CopyCampaignRefusal:
    """Create an unpublished campaign with a copy of each slot that is not cancelled.

    Return what the same request with this key created, if there is a record of it.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    key = IdempotencyKey.for_creation(
        organizer_id,
        key_text,
        "copyCampaign",
        request.campaign_id,
        request.name,
        request.weeks,
        request.allow_past,
    )
    refusal: CopyCampaignRefusal = CampaignBusy(RETRY_AFTER_MS)
    for _ in attempts():
        if stored := await find_created(services, key, CampaignCopy):
            return stored.outcome
        checked = await _check(services, request)
        if not isinstance(checked, _CheckedCopy):
            return checked
        if checked.problems.count:
            refusal = CampaignNotCopied(checked.problems)
            break
        if check_written(
            await services.slot_writer.commit(_to_changes(services, checked, organizer_id, key))
        ):
            return checked.plan.copy
    # A copy that another request of the key has written occupies the resources of this one.
    stored = await find_created(services, key, CampaignCopy)
    return stored.outcome if stored else refusal


@value_object
class _CheckedCopy:
    """A copy with its problems, and the resource versions for which there are no others."""

    plan: CopyPlan
    problems: CopyProblems
    draft_problems: CopyProblems
    preconditions: tuple[Precondition, ...]


async def _check(
    services: Services, request: CopyRequest
) -> _CheckedCopy | CampaignTooLarge | CampaignNotFound | InvalidInput:
    """Plan the copy from the current state of the campaign, and find the problems of its dates."""
    source = await _load(services, request.campaign_id)
    if not isinstance(source, CopySource):
        return source
    plan = plan_copy(source, request, _new_names(source), services.now())
    if isinstance(plan, InvalidInput):
        return plan
    rivals, versions = await resource_rivals(services, [state.slot for state in plan.slots])
    known_names = {resource.name for resource in versions if resource.version is not None}
    problems = (*plan.problems, *resource_problems(source, plan, rivals, known_names))
    of_drafts = CopyProblems.of(draft_problems(source, plan, rivals))
    return _CheckedCopy(plan, CopyProblems.of(problems), of_drafts, versions)


async def _load(
    services: Services, campaign_id: CampaignId
) -> CopySource | CampaignTooLarge | CampaignNotFound:
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    slots = await services.campaigns.find_slots_to_copy(campaign_id, MAX_COPIED_SLOTS + 1)
    if too_large := is_too_large(slots):
        return too_large
    of_campaign = await services.descriptions.find_of_campaigns([campaign_id])
    of_slots = await services.descriptions.find_of_slots([slot.id for slot in slots])
    campaign = replace(campaign, description=of_campaign.get(campaign_id))
    return CopySource(campaign, tuple(slots), of_slots)


def _new_names(source: CopySource) -> CopyNames:
    groups = {slot.choice_group for slot in source.slots if slot.choice_group is not None}
    series_ids = {slot.series_id for slot in source.slots if slot.series_id is not None}
    return CopyNames(
        new_campaign_id(),
        {slot.id: new_slot_id() for slot in source.slots},
        {series_id: new_series_id() for series_id in series_ids},
        {group: copied_choice_group(group, secrets.token_hex(4)) for group in groups},
    )


def _to_changes(
    services: Services, checked: _CheckedCopy, organizer_id: UserId, key: IdempotencyKey | None
) -> WriteSet:
    plan, now = checked.plan, services.now()
    note = note_campaign_change(None, plan.campaign, organizer_id, now)
    return WriteSet(
        (),
        idempotency_records=(to_record(key, plan.copy, now),) if key else (),
        new_campaigns=(NewCampaign(plan.campaign, now),),
        new_slots=plan.slots,
        preconditions=checked.preconditions,
        audit_notes=(note, *creation_notes(plan.slots, organizer_id)),
    )
