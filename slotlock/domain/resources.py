"""Resources that only one slot can use at a time, such as a room or a teacher."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

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


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who uses resources when. By start, so that a series is not compared with everything."""

    slots: tuple[Slot, ...]
    starts: tuple[datetime, ...]
    longest: timedelta

    @classmethod
    def of(cls, slots: Iterable[Slot]) -> "Occupancy":
        """The use that these slots make of resources."""
        users = sorted(filter(uses_resource, slots), key=lambda slot: slot.start)
        longest = max((slot.end - slot.start for slot in users), default=timedelta())
        return cls(tuple(users), tuple(slot.start for slot in users), longest)

    def clash(self, slot: Slot) -> ResourceTaken | None:
        """The first slot that wants the resource of this one at the same time."""
        if slot.resource is None or not uses_resource(slot):
            return None
        near = bisect_left(self.starts, slot.start - self.longest)
        for other in self.slots[near : bisect_left(self.starts, slot.end)]:
            if other.id == slot.id or other.resource != slot.resource:
                continue
            if overlap := first_overlap(slot.times, other.times):
                return ResourceTaken(slot.resource, overlap[0], other, overlap[1])
        return None
