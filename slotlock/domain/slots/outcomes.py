"""Outcomes of creating, editing, publishing and cancelling slots."""

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


EditSlotOutcome = (
    SlotSaved
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | CapacityBelowTaken
    | ResourceTaken
    | Locked
)
