"""The edits that an organizer can make to one slot or to several slots of a series."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import cancel_slot, edit, publish
from slotlock.domain.slots.outcomes import EditSlotOutcome
from slotlock.domain.slots.series import changes_per_slot
from slotlock.domain.users.user import UserId


@value_object
class EditFields:
    """Replace fields of slots, as planned for each of them."""

    by_slot: Mapping[SlotId, SlotChanges]

    def apply(self, state: SlotState, now: datetime) -> Decision[EditSlotOutcome]:
        """Decide the edit of one slot."""
        return edit(state, self.by_slot[state.id], now)


@value_object
class Publish:
    """Make drafts visible to everyone."""

    def apply(self, state: SlotState, _now: datetime) -> Decision[EditSlotOutcome]:
        """Decide the edit of one slot."""
        return publish(state)


@value_object
class Cancel:
    """Cancel slots with their bookings and waiting lists."""

    organizer_id: UserId

    def apply(self, state: SlotState, now: datetime) -> Decision[EditSlotOutcome]:
        """Decide the edit of one slot."""
        return cancel_slot(state, self.organizer_id, now)


RequestedEdit = SlotChanges | Publish | Cancel
SlotEdit = EditFields | Publish | Cancel


def plan_edit(requested: RequestedEdit, slots: Sequence[Slot]) -> SlotEdit | InvalidInput:
    """Plan the edit of each slot. Where times change, all slots move as the first one does."""
    if not isinstance(requested, SlotChanges):
        return requested
    if len(slots) == 1:
        return EditFields({slots[0].id: requested})
    by_slot = changes_per_slot(slots, slots[0], requested)
    return by_slot if isinstance(by_slot, InvalidInput) else EditFields(by_slot)
