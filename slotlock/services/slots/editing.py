"""Creating, editing, publishing and cancelling slots, one or several of a series."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.audit.audit_notes import AuditNote, note_slot_change
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import KeyReused, Locked, SlotNotFound
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.slot import MAX_CAPACITY, MAX_WAITLIST_CAPACITY, Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots import editing
from slotlock.domain.slots.resource_conflicts import ResourceTaken, ResourceUsage, needs_resource
from slotlock.domain.slots.series import SeriesScope, SlotEdit, is_in_scope, plan_edit
from slotlock.domain.slots.slot_outcomes import EditSlotOutcome, SlotSaved, SlotsSaved
from slotlock.domain.slots.slot_patch import SlotDraft, SlotPatch
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    Precondition,
    ResourceVersion,
    WriteSet,
    check_written,
)
from slotlock.services import resources
from slotlock.services.commands.commit import decide_and_commit, locked_refusal
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey, fields_of_draft
from slotlock.services.slots.edit_command import (
    EditSlots,
    EditSlotsOutcome,
    needs_new_resource_time,
)

CreateSlotRefusal = InvalidInput | CampaignNotFound | ResourceTaken | Locked | KeyReused
CreateSlotOutcome = SlotSaved | CreateSlotRefusal
NUMBER_TAKEN = InvalidInput((FieldProblem("number", ProblemCode.NUMBER_TAKEN.problem()),))


@value_object
class DraftInCampaign:
    """A draft with the terms of its campaign, and the precondition that these are current."""

    draft: SlotDraft
    preconditions: tuple[Precondition, ...]


async def with_campaign_terms(
    services: Services, draft: SlotDraft, campaign_id: CampaignId | None
) -> DraftInCampaign | CampaignNotFound:
    """Return a draft with the terms of its campaign, if it belongs to one."""
    if campaign_id is None:
        return DraftInCampaign(draft, ())
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    seen = CampaignVersion(campaign_id, campaign.terms.version)
    return DraftInCampaign(replace(draft, terms=campaign.terms), (seen,))


async def with_free_number(
    services: Services, slot: Slot
) -> tuple[Precondition, ...] | InvalidInput:
    """Return the precondition that no other slot of the campaign has the number of this one."""
    if slot.number is None or slot.terms is None:
        return ()
    campaign_id = slot.terms.campaign_id
    if await services.campaigns.find_numbered(campaign_id, slot.number) not in (None, slot.id):
        return NUMBER_TAKEN
    # The terms of the slot may be older for a moment.
    campaign = await services.campaigns.find(campaign_id)
    terms = slot.terms if campaign is None else campaign.terms
    return (CampaignVersion(campaign_id, terms.version, (slot.number,)),)


async def create(
    services: Services,
    draft: SlotDraft,
    organizer_id: UserId,
    campaign_id: CampaignId | None = None,
    key_text: str | None = None,
) -> CommandResult[CreateSlotOutcome]:
    """Create a slot, as a draft or published.

    Return the slot that the same request with this key created, if there is one.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    key = IdempotencyKey.for_creation(
        organizer_id, key_text, "createSlot", fields_of_draft(draft), campaign_id
    )
    slot_id = new_slot_id()
    refusal: CreateSlotRefusal = locked_refusal(slot_id)
    for _ in attempts():
        if stored := await find_created(services, key, SlotSaved):
            return CommandResult(stored.outcome, stored.slots)
        placed = await with_campaign_terms(services, draft, campaign_id)
        if isinstance(placed, CampaignNotFound):
            return CommandResult(placed)
        known = await resources.draft_with_resources(services, placed.draft)
        if isinstance(known, InvalidInput):
            return CommandResult(known)
        now = services.now()
        created = editing.create(slot_id, known, now)
        if isinstance(created, InvalidInput):
            return CommandResult(created)
        rivals, resource_versions = await resource_rivals(services, [created.slot])
        if taken := ResourceUsage.from_slots(rivals).conflict_with(created.slot):
            refusal = taken
            break
        numbers = await with_free_number(services, created.slot)
        if isinstance(numbers, InvalidInput):
            refusal = numbers
            break
        saved = SlotSaved(slot_id)
        write_set = WriteSet(
            (),
            idempotency_records=(to_record(key, saved, now, (created,)),) if key else (),
            new_slots=(created,),
            preconditions=(*placed.preconditions, *resource_versions, *numbers),
            audit_notes=creation_notes([created], organizer_id),
        )
        if check_written(await services.slot_writer.commit(write_set)):
            return CommandResult(saved, {slot_id: created})
    stored = await find_created(services, key, SlotSaved)
    return CommandResult(stored.outcome, stored.slots) if stored else CommandResult(refusal)


def creation_notes(created: Sequence[SlotState], organizer_id: UserId) -> tuple[AuditNote, ...]:
    """Return the audit notes for new slots."""
    notes = (note_slot_change(None, new, organizer_id) for new in created)
    return tuple(note for note in notes if note is not None)


async def edit(
    services: Services,
    slot_id: SlotId,
    changes: SlotPatch,
    organizer_id: UserId,
    scope: SeriesScope = SeriesScope.THIS,
) -> CommandResult[EditSlotOutcome]:
    """Change fields of a slot. Places that are added go to the waiting list first.

    With a wider scope other slots of its series change too, all or none. Where times change, all
    slots move as this one does.
    """
    known = await resources.changes_with_resources(services, changes)
    if isinstance(known, InvalidInput):
        return CommandResult(known)
    depth = MAX_CAPACITY if "capacity" in changes.given else 1
    target = _EditTarget(slot_id, scope, organizer_id, depth)
    return _result_of_named(await _edit_all(services, target, known))


async def publish(
    services: Services, slot_id: SlotId, organizer_id: UserId, scope: SeriesScope = SeriesScope.THIS
) -> CommandResult[EditSlotOutcome]:
    """Publish a draft, with a wider scope other slots of its series too."""
    target = _EditTarget(slot_id, scope, organizer_id)
    return _result_of_named(
        await _edit_all(services, target, lambda state, _now: editing.publish(state))
    )


async def cancel(
    services: Services,
    slot_id: SlotId,
    organizer_id: UserId,
    scope: SeriesScope = SeriesScope.THIS,
    reason: str | None = None,
) -> CommandResult[EditSlotOutcome]:
    """Cancel a slot for everyone, with a wider scope other slots of its series too."""
    target = _EditTarget(slot_id, scope, organizer_id, MAX_WAITLIST_CAPACITY)
    result = await _edit_all(services, target, cancellation_by(organizer_id, reason))
    if isinstance(result.outcome, SlotsSaved):
        await publish_cancelled_bookings(services, result.outcome)
    return _result_of_named(result)


def cancellation_by(organizer_id: UserId, reason: str | None = None) -> SlotEdit:
    """Return the edit that cancels a slot."""
    return lambda state, now: editing.cancel_slot(state, organizer_id, now, reason)


async def publish_cancelled_bookings(services: Services, cancelled: SlotsSaved) -> None:
    """Notify the users of the bookings in slots that were cancelled.

    Raises:
        CommitUnknownError: MongoDB is unavailable now, and the slots are cancelled.
    """
    with after_write():
        for saved in cancelled.saved:
            if roster := await services.slots.find_with_roster(saved.slot_id):
                services.slot_events.publish_booking_changed(roster.bookings)


def _result_of_named(result: CommandResult[EditSlotsOutcome]) -> CommandResult[EditSlotOutcome]:
    """Return the result for the slot that the organizer named, which is the first one."""
    outcome = result.outcome
    first = outcome.saved[0] if isinstance(outcome, SlotsSaved) else outcome
    return CommandResult(first, result.slots)


@value_object
class _EditTarget:
    """Which slots an organizer edits, and how many waitlist entries may be promoted in each."""

    slot_id: SlotId
    scope: SeriesScope
    organizer_id: UserId
    waitlist_depth: int = 1


async def _edit_all(
    services: Services, target: _EditTarget, requested: SlotPatch | SlotEdit
) -> CommandResult[EditSlotsOutcome]:
    """Edit all slots in scope or none, the named slot first."""
    for _ in attempts():
        command = await _plan(services, target, requested)
        if not isinstance(command, EditSlots):
            return CommandResult(command)
        batch = await decide_and_commit(services, [command], max_attempts=1)
        for availability in batch.events:
            services.slot_events.publish(availability)
        result = command.check_result(batch.results[0])
        if not isinstance(result.outcome, Locked):
            return result
    return CommandResult(locked_refusal(target.slot_id))


async def _plan(
    services: Services, target: _EditTarget, requested: SlotPatch | SlotEdit
) -> EditSlots | SlotNotFound | InvalidInput:
    """Plan the edit of each slot from its current state, again for every attempt."""
    now = services.now()
    loaded = await load_slots_in_scope(services, target.slot_id, target.scope, now)
    if not loaded:
        return SlotNotFound(target.slot_id)
    slots = tuple(state.slot for state in loaded)
    plan = plan_edit(requested, slots)
    if isinstance(plan, InvalidInput):
        return plan
    edited = [
        (before.slot, after.slot) for before in loaded for after in plan(before, now).changed_slots
    ]
    rescheduled = tuple(after for before, after in edited if needs_new_resource_time(before, after))
    rivals, resource_versions = await resource_rivals(services, rescheduled)
    if missing := await resources.find_missing(services, rescheduled, resource_versions):
        return missing
    numbers: tuple[Precondition, ...] = ()
    for before, after in edited:
        if after.number != before.number:
            free = await with_free_number(services, after)
            if isinstance(free, InvalidInput):
                return free
            numbers += free
    loaded_ids = {slot.id for slot in slots}
    return EditSlots(
        target.organizer_id,
        plan,
        slots,
        rescheduled,
        tuple(rival for rival in rivals if rival.id not in loaded_ids),
        target.waitlist_depth,
        (*resource_versions, *numbers),
        await _descriptions_before(services, requested, loaded),
    )


async def _descriptions_before(
    services: Services, requested: SlotPatch | SlotEdit, slots: Sequence[SlotState]
) -> Mapping[str, str] | None:
    """Return the descriptions of slots, if the request gives another one."""
    if not isinstance(requested, SlotPatch) or requested.description is UNCHANGED:
        return None
    return await services.descriptions.find_of_slots([slot.id for slot in slots])


async def load_slots_in_scope(
    services: Services, slot_id: SlotId, scope: SeriesScope, now: datetime
) -> Sequence[SlotState]:
    """Return the named slot and the others of its series that the edit is for."""
    this = await services.slots.find(SlotQuery(slot_id, now))
    if this is None:
        return ()
    series_id = this.slot.series_id
    if scope is SeriesScope.THIS or series_id is None:
        return (this,)
    of_series = await services.slots.find_by_series(series_id, now)
    others = (
        state
        for state in of_series
        if state.id != slot_id and is_in_scope(state.slot, this.slot, scope, now)
    )
    return (this, *others)


async def resource_rivals(
    services: Services, slots: Sequence[Slot]
) -> tuple[Sequence[SlotState], tuple[ResourceVersion, ...]]:
    """Return the slots that use the same resources at these times, and the resource versions.

    A draft has no rivals. The version of its resources guards against their deletion.
    """
    naming = [slot for slot in slots if needs_resource(slot)]
    if not naming:
        return (), ()
    names = sorted({name for slot in naming for name in slot.resources})
    start, end = min(slot.start for slot in naming), max(slot.end for slot in naming)
    versions, rivals = await services.resources.find_overlapping(names, start, end)
    return rivals, tuple(versions)
