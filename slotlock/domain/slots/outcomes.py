"""Outcomes of creating, editing, publishing and cancelling slots."""

from dataclasses import dataclass, replace
from typing import Self

from slotlock.domain.booking.refusals import (
    CapacityBelowTaken,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.domain.booking.slot_outcome import OutcomeWithSlots, SlotOutcome, SlotReplacement
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.resources import ResourceTaken


@dataclass(frozen=True, slots=True)
class SlotSaved(SlotOutcome):
    """The slot was created or edited."""


@dataclass(frozen=True, slots=True)
class SlotsSaved(OutcomeWithSlots):
    """All slots were edited."""

    saved: tuple[SlotSaved, ...]

    def map_slots(self, replacement: SlotReplacement) -> Self:
        """Return the outcome with each slot that it shows replaced."""
        return replace(self, saved=tuple(each.map_slots(replacement) for each in self.saved))


EditSlotOutcome = (
    SlotSaved
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | CapacityBelowTaken
    | ResourceTaken
    | Locked
)
