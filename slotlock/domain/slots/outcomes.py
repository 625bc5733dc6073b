"""Outcomes of creating, editing, publishing, cancelling and deleting slots."""

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.refusals import (
    CapacityBelowTaken,
    Locked,
    SlotCancelled,
    SlotNotFound,
    SlotOutcome,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.resources import ResourceTaken


@value_object
class SlotSaved(SlotOutcome):
    """The slot was created or edited."""


@value_object
class SlotsSaved:
    """All slots were edited, the one that the organizer named first."""

    saved: tuple[SlotSaved, ...]


@value_object
class SlotsDeleted:
    """All slots were deleted, the one that the organizer named first."""

    slot_ids: tuple[SlotId, ...]


@value_object
class SlotNotPublished(SlotOutcome):
    """The slot is a draft, which nobody but organizers has seen: it can only be deleted."""


@value_object
class SlotHasBookings(SlotOutcome):
    """A user has booked the slot or has waited for it, now or earlier."""


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
