"""What clients see of slots in the outcomes of all capabilities, and the results about slots."""

from slotlock.domain.booking import booking
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.slot_outcomes import DeleteSlotOutcome, EditSlotOutcome, SlotSaved
from slotlock.graphql.core.outcomes import AsSlot, Result, ResultView, register_type, register_value
from slotlock.graphql.slots.slot_types import Booking, Slot, WaitlistEntry
from slotlock.services.slots.editing import CreateSlotOutcome


def show_slot(slot_id: SlotId, _outcome: object, view: ResultView) -> Slot:
    """Show a slot of the view, as one object for all that shows it."""
    shown: Slot | None = view.shown_slots.get(slot_id)
    if shown is None:
        shown = view.shown_slots[slot_id] = Slot(view.slots[slot_id], view.viewer)
    return shown


def show_booking(value: booking.Booking, outcome: object, view: ResultView) -> Booking:
    """Show a booking in its slot."""
    return Booking.from_domain(value, show_slot(value.slot_id, outcome, view), view.viewer)


register_value(AsSlot, Slot, show_slot)
register_value(SlotState, Slot, lambda state, _outcome, view: Slot(state, view.viewer))
register_value(booking.Booking, Booking, show_booking)
register_value(
    booking.WaitlistEntry,
    WaitlistEntry,
    lambda entry, outcome, view: WaitlistEntry(entry, show_slot(entry.slot_id, outcome, view)),
)
register_type(SlotSaved, Slot, lambda saved, view: show_slot(saved.slot_id, saved, view))

CREATE_SLOT = Result[CreateSlotOutcome]("CreateSlotResult", "The new slot, or a refusal.")
UPDATE_SLOT = Result[EditSlotOutcome]("UpdateSlotResult", "The changed slot, or a refusal.")
DELETE_SLOT = Result[DeleteSlotOutcome](
    "DeleteSlotResult", "The ids of what was deleted, or a refusal."
)
