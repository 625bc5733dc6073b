"""What a client may see of the outcome of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import Caller


class SlotOutcome(Protocol):
    """An outcome or a refusal about one slot."""

    @property
    def slot(self) -> Slot:
        """The slot, as it is after the command."""
        ...


@dataclass(frozen=True, slots=True)
class ResultView:
    """The viewer of a result and the slots that its outcome is about."""

    viewer: Caller | None
    slots: Mapping[SlotId, Slot] = field(default_factory=dict)

    def slot_of(self, outcome: SlotOutcome) -> Slot:
        """Return the slot that an outcome is about."""
        return self.slots.get(outcome.slot.id, outcome.slot)
