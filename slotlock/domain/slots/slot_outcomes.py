"""Outcomes of creating, editing, publishing, cancelling and deleting slots."""

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import (
    CapacityBelowTaken,
    Locked,
    SlotCancelled,
    SlotNotFound,
    SlotOutcome,
)
from slotlock.domain.shared.declare import CURRENT_SLOT, outcome, refusal, shown, shown_slot
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.resource_conflicts import ResourceTaken


@value_object
class SlotSaved(SlotOutcome):
    """The slot was created or edited."""


@value_object
class SlotsSaved:
    """All slots were edited, the one that the organizer named first."""

    saved: tuple[SlotSaved, ...]


@outcome
class SlotsDeleted:
    """The slots were deleted."""

    slot_ids: tuple[SlotId, ...] = shown(
        "The ids of the deleted slots, the slot that the request named first."
    )


@refusal(message="This slot is a draft. Please delete it instead.")
class SlotNotPublished(SlotOutcome):
    """The slot is a draft, so it cannot be cancelled. Drafts can be deleted."""

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="This slot has or had bookings. Please cancel it instead.")
class SlotHasBookings(SlotOutcome):
    """A user has booked the slot or has waited for it, now or earlier, so it cannot be deleted.

    A published slot can be cancelled.
    """

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


EditSlotOutcome = (
    SlotSaved
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | SlotNotPublished
    | CapacityBelowTaken
    | ResourceTaken
    | Locked
)
DeleteSlotOutcome = SlotsDeleted | SlotNotFound | SlotHasBookings | Locked
