"""Outcomes of creating, editing, publishing and cancelling slots."""

from dataclasses import dataclass

from slotlock.domain.booking.refusals import (
    CapacityBelowTaken,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.resources import ResourceTaken


@dataclass(frozen=True, slots=True)
class SlotSaved:
    """The slot was created or edited."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotsSaved:
    """All slots were edited."""

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
