"""The organisers' acts on slots: create, edit, publish, call off; one, or more of a series."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slotlock.domain.audit.notes import AuditNote, note_slot_change
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import EditSlotOutcome, SlotSaved, SlotsSaved
from slotlock.domain.booking.refusals import Locked, SlotNotFound
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots import editing
from slotlock.domain.slots.resources import ResourceTaken, ResourceUsage, uses_resource
from slotlock.domain.slots.series import SeriesScope, changes_per_slot, slots_in_scope
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.mongo.slots.preconditions import CampaignVersion, Precondition
from slotlock.infrastructure.mongo.slots.repository import SlotQuery
from slotlock.services.commands.decisions import SlotCommand, SlotStates
from slotlock.services.commands.executor import decide_and_commit, locked_refusal
from slotlock.services.container import Services

# An edit takes no lock, so that a rush cannot keep its organiser out; each try is guarded by
# version, and between two bookings of one slot lies more time than a try takes.
MAX_EDIT_ATTEMPTS = 20

SlotEdit = Callable[[Slot, datetime], tuple[Slot, EditSlotOutcome]]
# What becomes of each of these slots, as they are now; the one that is named is the first.
EditPlan = Callable[[Sequence[Slot]], SlotEdit | InvalidInput]
CreateSlotOutcome = SlotSaved | InvalidInput | CampaignNotFound | ResourceTaken | Locked


@dataclass(frozen=True, slots=True)
class DraftInCampaign:
    """A draft with the terms of its campaign, and what guards them."""

    draft: editing.SlotDraft
    preconditions: tuple[Precondition, ...]


async def with_campaign_terms(
    services: Services, draft: editing.SlotDraft, campaign_id: CampaignId | None
) -> DraftInCampaign | CampaignNotFound:
    """A draft with the terms of the campaign that it shall belong to, if any."""
    if campaign_id is None:
        return DraftInCampaign(draft, ())
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    seen = CampaignVersion(campaign_id, campaign.terms.version)
    return DraftInCampaign(replace(draft, terms=campaign.terms), (seen,))


async def create(
    services: Services,
    draft: editing.SlotDraft,
    organizer_id: UserId,
    campaign_id: CampaignId | None = None,
) -> CreateSlotOutcome:
    """Create a slot, published at once or as a draft, perhaps in a campaign."""
    slot_id = new_slot_id()
    for _ in range(MAX_EDIT_ATTEMPTS):
        placed = await with_campaign_terms(services, draft, campaign_id)
        if isinstance(placed, CampaignNotFound):
            return placed
        outcome = editing.create(slot_id, placed.draft, services.now())
        if isinstance(outcome, InvalidInput):
            return outcome
        others, seen = await resource_rivals(services, [outcome.slot])
        if taken := ResourceUsage.from_slots(others).conflict_with(outcome.slot):
            return taken
        guards = (*placed.preconditions, *seen)
        new = (outcome.slot,)
        changes = ChangeSet(
            (), new_slots=new, preconditions=guards, audit_notes=creation_notes(new, organizer_id)
        )
        if check_written(await services.slot_writer.commit(changes)):
            return outcome
    return locked_refusal(slot_id)


def creation_notes(slots: Sequence[Slot], organizer_id: UserId) -> tuple[AuditNote, ...]:
    """What is noted of new slots."""
    return tuple(note for slot in slots if (note := note_slot_change(None, slot, organizer_id)))


async def edit(
    services: Services,
    slot_id: SlotId,
    changes: Mapping[str, Any],
    organizer_id: UserId,
    scope: SeriesScope = SeriesScope.THIS,
) -> EditSlotOutcome:
    """Change the named fields of a slot. Places that are added go to those who wait.

    With a wider scope the others of its series change too, all or none; where times change, they
    move as this one does.
    """

    def plan(slots: Sequence[Slot]) -> SlotEdit | InvalidInput:
        if len(slots) == 1:
            return lambda slot, _: editing.edit(slot, changes)
        each = changes_per_slot(slots, slots[0], changes)
        if isinstance(each, InvalidInput):
            return each
        return lambda slot, _: editing.edit(slot, each[slot.id])

    heads = editing.MAX_CAPACITY if "capacity" in changes else 1
    return _first_outcome(await _edit_all(services, slot_id, scope, organizer_id, plan, heads))


async def publish(
    services: Services, slot_id: SlotId, organizer_id: UserId, scope: SeriesScope = SeriesScope.THIS
) -> EditSlotOutcome:
    """Open a draft to everyone, with a wider scope others of its series too."""

    def plan(_: Sequence[Slot]) -> SlotEdit:
        return lambda slot, _: editing.publish(slot)

    return _first_outcome(await _edit_all(services, slot_id, scope, organizer_id, plan))


async def cancel(
    services: Services, slot_id: SlotId, organizer_id: UserId, scope: SeriesScope = SeriesScope.THIS
) -> EditSlotOutcome:
    """Cancel a slot for everyone, with a wider scope others of its series too."""

    def plan(_: Sequence[Slot]) -> SlotEdit:
        return lambda slot, now: editing.cancel_slot(slot, organizer_id, now)

    outcome = await _edit_all(
        services, slot_id, scope, organizer_id, plan, waitlist_depth=editing.MAX_WAITLIST_CAPACITY
    )
    for kept in outcome.saved if isinstance(outcome, SlotsSaved) else ():
        if roster := await services.slots.find_with_roster(kept.slot.id):
            services.slot_events.publish_booking_changed(roster.bookings)
    return _first_outcome(outcome)


def _first_outcome(outcome: SlotsSaved | EditSlotOutcome) -> EditSlotOutcome:
    return outcome.saved[0] if isinstance(outcome, SlotsSaved) else outcome


async def _load_slots_in_scope(
    services: Services, slot_id: SlotId, scope: SeriesScope, now: datetime
) -> Sequence[Slot]:
    """The slot and the others of its series that a change is for; the one that is named first."""
    this = await services.slots.find(SlotQuery(slot_id, now))
    if this is None:
        return ()
    if scope is SeriesScope.THIS or this.series_id is None:
        return (this,)
    found = slots_in_scope(
        await services.slots.find_by_series(this.series_id, now), this, scope, now
    )
    return (this, *(slot for slot in found if slot.id != slot_id))


async def _edit_all(
    services: Services,
    slot_id: SlotId,
    scope: SeriesScope,
    organizer_id: UserId,
    plan: EditPlan,
    waitlist_depth: int = 1,
) -> SlotsSaved | EditSlotOutcome:
    """The outcome for the slots in scope, the named one first, once all have changed, or none."""
    for _ in range(MAX_EDIT_ATTEMPTS):
        now = services.now()
        seen = await _load_slots_in_scope(services, slot_id, scope, now)
        if not seen:
            return SlotNotFound(slot_id)
        rule = plan(seen)  # anew at each try: what others changed meanwhile is built on
        if isinstance(rule, InvalidInput):
            return rule
        moved = [
            after
            for before in seen
            if _needs_new_resource_time(before, after := rule(before, now)[0])
        ]
        others, guards = await resource_rivals(services, moved)
        ids = [slot.id for slot in seen]
        request = SlotCommand(
            _apply_to_all(seen, rule, [slot for slot in others if slot.id not in ids], moved),
            user_ids=(organizer_id,),
            waitlist_depth=waitlist_depth,
            preconditions=guards,
            audit_note=lambda change: note_slot_change(change.before, change.after, organizer_id),
        )
        news: list[Availability] = []
        outcome: SlotsSaved | EditSlotOutcome
        (outcome,) = await decide_and_commit(services, ids, [request], news, max_attempts=1)
        for state in news:
            services.slot_events.publish(state)
        if not isinstance(outcome, Locked):
            return outcome
    return locked_refusal(slot_id)


def _apply_to_all(
    loaded_slots: Sequence[Slot],
    slot_edit: SlotEdit,
    rivals: Sequence[Slot],
    rescheduled: Sequence[Slot],
) -> Callable[[SlotStates, datetime], tuple[SlotStates, SlotsSaved | EditSlotOutcome]]:
    planned = {slot.id: slot for slot in rescheduled}

    def apply(slots: SlotStates, now: datetime) -> tuple[SlotStates, SlotsSaved | EditSlotOutcome]:
        after, kept = dict(slots), list[SlotSaved]()
        for before in loaded_slots:
            slot = slots.get(before.id)
            if slot is None or _plan_basis(slot) != _plan_basis(before):
                return slots, locked_refusal(
                    before.id
                )  # changed since it was planned what each becomes
            changed, outcome = slot_edit(slot, now)
            if not isinstance(outcome, SlotSaved):
                return slots, outcome
            if _needs_new_resource_time(slot, changed) and _resource_use(changed) != _resource_use(
                planned.get(slot.id, slot)
            ):
                return slots, locked_refusal(slot.id)  # changed since the others were looked at
            after[slot.id] = changed
            kept.append(outcome)
        occupied = ResourceUsage.from_slots((*rivals, *after.values()))
        for slot_id in planned:
            if taken := occupied.conflict_with(after[slot_id]):
                return slots, taken
        return after, SlotsSaved(tuple(kept))

    return apply


def _needs_new_resource_time(before: Slot, after: Slot) -> bool:
    """Whether a slot wants its resource at other times than before, or another one."""
    return uses_resource(after) and _resource_use(after) != _resource_use(before)


def _resource_use(slot: Slot) -> tuple[Any, ...]:
    return slot.resource, slot.status, slot.all_meetings


def _plan_basis(slot: Slot) -> tuple[Any, ...]:
    """What of a slot it depends on whether it is in scope, and what others of its series become."""
    return slot.status, slot.all_meetings, slot.time_zone


async def resource_rivals(
    services: Services, slots: Sequence[Slot]
) -> tuple[Sequence[Slot], tuple[Precondition, ...]]:
    """The slots that may want the resource of these at their times, and what guards that."""
    wanting = [slot for slot in slots if uses_resource(slot)]
    others: list[Slot] = []
    guards: list[Precondition] = []
    for name in sorted({slot.resource for slot in wanting if slot.resource is not None}):
        theirs = [slot for slot in wanting if slot.resource == name]
        start, end = min(slot.start for slot in theirs), max(slot.end for slot in theirs)
        seen, found = await services.resources.find_overlapping(name, start, end)
        guards.append(seen)
        others += found
    return others, tuple(guards)
