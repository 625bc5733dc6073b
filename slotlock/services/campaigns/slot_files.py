"""The courses of a campaign as a file: an import writes all rows in one transaction, or none."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from slotlock.domain.audit.audit_notes import note_resource_change
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import MAX_CAPACITY, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import CampaignBusy, CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slot_files.cells import write_cells
from slotlock.domain.slot_files.plan import (
    CampaignSlots,
    ImportOptions,
    SlotFilePlan,
    SlotsImported,
    conflict_problems,
)
from slotlock.domain.slot_files.planning import plan_slot_file
from slotlock.domain.slot_files.slot_file import SlotFile, parse_slot_file
from slotlock.domain.slots import editing
from slotlock.domain.slots.slot_outcomes import SlotsSaved
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    Precondition,
    check_written,
)
from slotlock.services.batch_decision import decide_batch
from slotlock.services.campaigns.campaigns import RETRY_AFTER_MS
from slotlock.services.commands.commit import audit_notes, load_slots, publish_changes, write_set
from slotlock.services.container import Services
from slotlock.services.slots.edit_command import EditSlots, needs_new_resource_time
from slotlock.services.slots.editing import creation_notes, resource_rivals

ImportSlotsRefusal = InvalidFile | CampaignNotFound | CampaignBusy
ImportSlotsOutcome = SlotsImported | ImportSlotsRefusal


async def import_slots(
    services: Services,
    body: bytes,
    campaign_id: CampaignId,
    options: ImportOptions,
    organizer_id: UserId,
    *,
    dry_run: bool,
) -> ImportSlotsOutcome:
    """Create and change the slots of a campaign as a file says, all or none.

    A dry run writes nothing. Importing the same file again changes nothing.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    file = await asyncio.to_thread(parse_slot_file, body, await services.period_list.find())
    if isinstance(file, InvalidFile):
        return file
    for _ in attempts():
        now = services.now()
        checked = await _check(services, file, campaign_id, options, organizer_id, now)
        if isinstance(checked, InvalidFile | CampaignNotFound):
            return checked
        plan = checked.plan
        if dry_run or plan.is_empty or await _write(services, checked, organizer_id, now):
            return SlotsImported(plan, file, dry_run)
    return CampaignBusy(RETRY_AFTER_MS)


async def export_slots(services: Services, campaign_id: CampaignId) -> list[dict[str, str]]:
    """Return the cells of each slot of a campaign that is not cancelled, by their columns."""
    found = await services.campaigns.find_all_slots(campaign_id)
    slots = [slot for slot in found if slot.status is not SlotStatus.CANCELLED]
    texts = await services.descriptions.find_of_slots([slot.id for slot in slots])
    known = await services.resources.find_all({name for slot in slots for name in slot.resources})
    return await asyncio.to_thread(
        lambda: [write_cells(slot, texts.get(slot.id), known) for slot in slots]
    )


@value_object
class _CheckedFile:
    """A plan without problems, the command for its edits, and what both rely on."""

    plan: SlotFilePlan
    command: EditSlots
    preconditions: tuple[Precondition, ...]


async def _check(
    services: Services,
    file: SlotFile,
    campaign_id: CampaignId,
    options: ImportOptions,
    organizer_id: UserId,
    now: datetime,
) -> _CheckedFile | InvalidFile | CampaignNotFound:
    """Plan the import from the current state of the campaign, and find its conflicts."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    found = await services.campaigns.find_all_slots(campaign_id)
    slots = {slot.id: SlotState(slot, version=1, changed_at=now) for slot in found}
    descriptions: Mapping[str, str] = {}
    if "description" in file.columns:
        descriptions = await services.descriptions.find_of_slots(list(slots))
    names = file.resource_names | {name for slot in found for name in slot.resources}
    known = await services.resources.find_all(names)
    all_names = await services.resources.find_names() if len(known) < len(names) else ()
    current = CampaignSlots(campaign.terms, slots, descriptions, known, all_names)
    plan = await _plan_with_bookings(services, file, current, options, now)
    if isinstance(plan, InvalidFile):
        return plan
    rescheduled = tuple(
        after.slot
        for slot_id, after in plan.edited.items()
        if needs_new_resource_time(slots[slot_id].slot, after.slot)
    )
    needing = [*rescheduled, *(state.slot for state in plan.created)]
    rivals, resource_versions = await resource_rivals(services, needing)
    new_names = {resource.name for resource in plan.new_resources}
    existing = [each for each in resource_versions if each.name not in new_names]
    deleted = {each.name for each in existing if each.version is None}
    if conflicts := conflict_problems(file, plan, rivals, deleted):
        return conflicts
    command = EditSlots(
        organizer_id,
        lambda state, at: editing.edit(state, plan.patches[state.id], at),
        tuple(slots[slot_id].slot for slot_id in plan.patches),
        rescheduled,
        tuple(rival for rival in rivals if rival.id not in plan.edited),
        _waitlist_depth(plan),
        descriptions={id_: text for id_, text in descriptions.items() if id_ in plan.edited},
    )
    version = CampaignVersion(campaign_id, campaign.terms.version, plan.numbers)
    return _CheckedFile(plan, command, (version, *existing))


async def _plan_with_bookings(
    services: Services,
    file: SlotFile,
    campaign: CampaignSlots,
    options: ImportOptions,
    now: datetime,
) -> SlotFilePlan | InvalidFile:
    """Plan first without the bookings, and then with those of the slots that would change."""
    plan = await asyncio.to_thread(plan_slot_file, file, campaign, options, now, new_slot_id)
    if isinstance(plan, InvalidFile) or not plan.patches:
        return plan
    queries = (SlotQuery(slot_id, now) for slot_id in plan.patches)
    loaded = (await services.slots.find_for_update(*queries)).slots
    current = {slot_id: as_of(state, now) for slot_id, state in loaded.items()}
    with_bookings = replace(campaign, slots={**campaign.slots, **current})
    return await asyncio.to_thread(plan_slot_file, file, with_bookings, options, now, new_slot_id)


def _waitlist_depth(plan: SlotFilePlan) -> int:
    """Return how many entries of each waiting list may get the places that are added."""
    adds_places = any("capacity" in patch.given for patch in plan.patches.values())
    return MAX_CAPACITY if adds_places else 1


async def _write(
    services: Services, checked: _CheckedFile, organizer_id: UserId, now: datetime
) -> bool:
    """Write a plan and tell subscribers; False if another writer was faster."""
    plan, command = checked.plan, checked.command
    decided = decide_batch(await load_slots(services, [command], now), [command], now)
    if not isinstance(decided.decisions[0].outcome, SlotsSaved):
        return False  # a slot has changed since the import was planned
    changes = replace(
        write_set([command], decided, now),
        new_slots=plan.created,
        new_resources=plan.new_resources,
        preconditions=checked.preconditions,
        audit_notes=(
            *audit_notes(command, decided.updates),
            *creation_notes(plan.created, organizer_id),
            *filter(
                None,
                (
                    note_resource_change(None, each, organizer_id, now)
                    for each in plan.new_resources
                ),
            ),
        ),
    )
    if not check_written(await services.slot_writer.commit(changes)):
        return False
    services.free_place_hints.observe(decided.slots.values())
    for availability in publish_changes(services, decided.updates):
        services.slot_events.publish(availability)
    return True
