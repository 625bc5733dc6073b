"""What outcomes and refusals that show slots have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from slotlock.domain.booking.slot import Slot

SlotReplacement = Callable[[Slot], Slot]


class OutcomeWithSlots(ABC):
    """An outcome or refusal that shows one slot or several."""

    __slots__ = ()

    @abstractmethod
    def map_slots(self, replacement: SlotReplacement) -> Self:
        """Return the outcome with each slot that it shows replaced."""


@dataclass(frozen=True, slots=True)
class SlotOutcome(OutcomeWithSlots):
    """An outcome or refusal about one slot."""

    slot: Slot

    def map_slots(self, replacement: SlotReplacement) -> Self:
        """Return the outcome with its slot replaced."""
        return replace(self, slot=replacement(self.slot))
