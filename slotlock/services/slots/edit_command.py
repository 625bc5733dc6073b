"""The command that edits one slot, or several slots of a series all or none."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from slotlock.domain.audit.audit_notes import AuditNote, note_slot_change
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision, LoadedState, accept, refuse
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.resource_conflicts import ResourceUsage, needs_resource
from slotlock.domain.slots.series import SlotEdit
from slotlock.domain.slots.slot_outcomes import EditSlotOutcome, SlotSaved, SlotsSaved
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.write_set import Precondition, SlotWrite
from slotlock.services.commands.commit import locked_refusal
from slotlock.services.slot_command import SlotCommand

EditSlotsOutcome = SlotsSaved | EditSlotOutcome


@value_object
class EditSlots(SlotCommand[EditSlotsOutcome]):
    """Edit slots as planned from their state when they were loaded, all or none.

    `rescheduled` are the slots, as planned, that need their resource at other times or another
    resource. `rivals` are the slots of others that use these resources. `descriptions` are those
    before the edit, by slot, if it gives one.
    """

    is_edit: ClassVar[bool] = True

    organizer_id: UserId
    edit: SlotEdit
    loaded_slots: tuple[Slot, ...]
    rescheduled: tuple[Slot, ...]
    rivals: tuple[SlotState, ...]
    waitlist_depth: int = 1
    preconditions: tuple[Precondition, ...] = ()
    descriptions: Mapping[str, str] | None = None

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return tuple(slot.id for slot in self.loaded_slots)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.organizer_id,)

    def audit_note(self, change: SlotWrite) -> AuditNote | None:
        before, after = change.before.slot, change.after
        description = (self.descriptions or {}).get(before.id)
        return note_slot_change(before, after, self.organizer_id, description)

    def apply(self, state: LoadedState, now: datetime) -> Decision[EditSlotsOutcome]:
        planned = {slot.id: slot for slot in self.rescheduled}
        after, saved = dict(state.slots), list[SlotSaved]()
        for loaded in self.loaded_slots:
            before = state.slots.get(loaded.id)
            if before is None or plan_basis(before.slot) != plan_basis(loaded):
                return refuse(locked_refusal(loaded.id))  # the plan is outdated
            if self.descriptions is not None and before.slot.revision != loaded.revision:
                return refuse(locked_refusal(loaded.id))  # and so may be the description before
            decision = self.edit(before, now)
            if not isinstance(decision.outcome, SlotSaved):
                return refuse(decision.outcome)
            for edited in decision.changed_slots:
                after[loaded.id] = edited
                needs_rivals = needs_new_resource_time(before.slot, edited.slot)
                expected = planned.get(loaded.id, before.slot)
                if needs_rivals and resource_use(edited.slot) != resource_use(expected):
                    return refuse(locked_refusal(loaded.id))  # loaded rivals are for other times
            saved.append(decision.outcome)
        usage = ResourceUsage.from_slots((*self.rivals, *after.values()))
        for slot_id in planned:
            if taken := usage.conflict_with(after[slot_id].slot):
                return refuse(taken)
        changed = (slot for slot_id, slot in after.items() if slot is not state.slots[slot_id])
        return accept(SlotsSaved(tuple(saved)), *changed)


def needs_new_resource_time(before: Slot, after: Slot) -> bool:
    """Return whether a slot needs its resource at other times than before, or another resource."""
    return needs_resource(after) and resource_use(after) != resource_use(before)


def resource_use(slot: Slot) -> tuple[tuple[str, ...], SlotStatus, tuple[Meeting, ...]]:
    """Return the fields that determine when a slot occupies which resources."""
    return slot.resources, slot.status, slot.all_meetings


def plan_basis(slot: Slot) -> tuple[SlotStatus, tuple[Meeting, ...], str]:
    """Return the inputs of a plan: the scope of the edit and the new times of a series."""
    return slot.status, slot.all_meetings, slot.time_zone
