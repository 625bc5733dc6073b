"""Outcomes of creating, editing, publishing and cancelling slots."""

from dataclasses import dataclass

from slotlock.domain.booking.refusals import (
    CapacityBelowTaken,
    Locked,
    SlotCancelled,
    SlotNotFound,
    SlotOutcome,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.resources import ResourceTaken


@dataclass(frozen=True, slots=True)
class SlotSaved(SlotOutcome):
    """The slot was created or edited."""


@dataclass(frozen=True, slots=True)
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
