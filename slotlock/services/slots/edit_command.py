"""The command that edits one slot, or several slots of a series all or none."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from slotlock.domain.audit.notes import AuditNote, note_slot_change
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision, accept, refuse
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.edits import SlotEdit
from slotlock.domain.slots.outcomes import EditSlotOutcome, SlotSaved, SlotsSaved
from slotlock.domain.slots.resources import ResourceUsage, uses_resource
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.change_set import SlotUpdate
from slotlock.infrastructure.mongo.slots.preconditions import Precondition
from slotlock.services.commands.executor import locked_refusal
from slotlock.services.slot_command import SlotCommand, UnexpectedOutcomeError

EditSlotsOutcome = SlotsSaved | EditSlotOutcome


@dataclass(frozen=True, slots=True)
class EditSlots(SlotCommand[EditSlotsOutcome]):
    """Edit slots as planned from their state when they were loaded, all or none.

    `rescheduled` are the slots, as planned, that need their resource at other times or another
    resource. `rivals` are the slots of others that use these resources.
    """

    name: ClassVar[str] = "edit"

    organizer_id: UserId
    edit: SlotEdit
    loaded_slots: tuple[Slot, ...]
    rescheduled: tuple[Slot, ...]
    rivals: tuple[Slot, ...]
    waitlist_depth: int = 1
    preconditions: tuple[Precondition, ...] = ()

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return tuple(slot.id for slot in self.loaded_slots)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.organizer_id,)

    def audit_note(self, change: SlotUpdate) -> AuditNote | None:
        return note_slot_change(change.before, change.after, self.organizer_id)

    def apply(self, slots: Mapping[SlotId, Slot], now: datetime) -> Decision[EditSlotsOutcome]:
        planned = {slot.id: slot for slot in self.rescheduled}
        after, saved, changed = dict(slots), list[SlotSaved](), list[Slot]()
        for loaded in self.loaded_slots:
            slot = slots.get(loaded.id)
            if slot is None or plan_basis(slot) != plan_basis(loaded):
                return refuse(locked_refusal(loaded.id))  # the plan is outdated
            decision = self.edit.apply(slot, now)
            if not isinstance(decision.outcome, SlotSaved):
                return refuse(decision.outcome)
            edited = decision.outcome.slot
            if needs_new_resource_time(slot, edited) and resource_use(edited) != resource_use(
                planned.get(slot.id, slot)
            ):
                return refuse(locked_refusal(slot.id))  # the rivals were loaded for other times
            after[slot.id] = edited
            saved.append(decision.outcome)
            changed += decision.changed_slots
        usage = ResourceUsage.from_slots((*self.rivals, *after.values()))
        for slot_id in planned:
            if taken := usage.conflict_with(after[slot_id]):
                return refuse(taken)
        return accept(SlotsSaved(tuple(saved)), *changed)

    @staticmethod
    def check_outcome(outcome: object) -> EditSlotsOutcome:
        if isinstance(outcome, EditSlotsOutcome):
            return outcome
        raise UnexpectedOutcomeError(outcome)


def needs_new_resource_time(before: Slot, after: Slot) -> bool:
    """Return whether a slot needs its resource at other times than before, or another resource."""
    return uses_resource(after) and resource_use(after) != resource_use(before)


def resource_use(slot: Slot) -> tuple[str | None, SlotStatus, tuple[Meeting, ...]]:
    """Return the fields that determine when a slot occupies which resource."""
    return slot.resource, slot.status, slot.all_meetings


def plan_basis(slot: Slot) -> tuple[SlotStatus, tuple[Meeting, ...], str]:
    """Return the inputs of a plan: the scope of the edit and the new times of a series."""
    return slot.status, slot.all_meetings, slot.time_zone
