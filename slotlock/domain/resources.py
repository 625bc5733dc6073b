"""Resources that only one slot can use at a time, such as a room or a teacher."""

from collections.abc import Iterable
from dataclasses import dataclass

from slotlock.domain.meetings import Meeting, first_overlap
from slotlock.domain.slots import Slot, SlotStatus


@dataclass(frozen=True, slots=True)
class ResourceTaken:
    """Another published slot uses the resource at the same time."""

    resource: str
    meeting: Meeting
    other: Slot
    other_meeting: Meeting


def uses_resource(slot: Slot) -> bool:
    """Whether a slot keeps others from its resource: drafts and called-off slots do not."""
    return slot.resource is not None and slot.status is SlotStatus.PUBLISHED


def clash(slot: Slot, others: Iterable[Slot]) -> ResourceTaken | None:
    """The first of the other slots that wants the resource of this one at the same time."""
    if slot.resource is None or not uses_resource(slot):
        return None
    for other in others:
        if other.id == slot.id or other.resource != slot.resource or not uses_resource(other):
            continue
        if overlap := first_overlap(slot.times, other.times):
            return ResourceTaken(slot.resource, overlap[0], other, overlap[1])
    return None
