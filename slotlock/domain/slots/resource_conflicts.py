"""Resources that only one slot can use at a time, such as a room or a teacher."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import datetime
from itertools import accumulate

from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.declare import refusal, shown
from slotlock.domain.shared.value_object import value_object


@refusal(message="Another slot uses {resource} at that time.")
class ResourceTaken:
    """Another published slot uses the resource at the same time."""

    resource: str = shown("The name of the resource that both slots need.", name="resource_name")
    meeting: Meeting = shown("The first meeting of the slot that overlaps.")
    other: SlotState = shown("The slot that uses the resource.")
    other_meeting: Meeting = shown("The overlapping meeting of the other slot.")


def needs_resource(slot: Slot) -> bool:
    """Return whether the resources of a slot have to exist: a draft will occupy them later."""
    return slot.resource is not None and slot.status is not SlotStatus.CANCELLED


def uses_resource(slot: Slot) -> bool:
    """Return whether a slot occupies its resources: drafts and cancelled slots do not."""
    return slot.resource is not None and slot.status is SlotStatus.PUBLISHED


@value_object
class ResourceUsage:
    """The meetings that use resources, sorted by resource and start, with two search indexes.

    `starts` has their starts, `ends` the latest end of that resource up to there. Both are sorted,
    so that only meetings which are near are compared: of one resource, they do not overlap.
    """

    meetings: tuple[tuple[Meeting, SlotState], ...]
    starts: tuple[tuple[str, datetime], ...]
    ends: tuple[tuple[str, datetime], ...]

    @classmethod
    def from_slots(cls, states: Iterable[SlotState]) -> "ResourceUsage":
        """Return the resource usage of these slots."""
        uses = [
            (name, meeting, state)
            for state in states
            if uses_resource(state.slot)
            for name in state.slot.resources
            for meeting in state.slot.all_meetings
        ]
        uses.sort(key=lambda use: (use[0], use[1].start))
        ends = accumulate(((name, meeting.end) for name, meeting, _ in uses), max)
        return cls(
            tuple((meeting, state) for _, meeting, state in uses),
            tuple((name, meeting.start) for name, meeting, _ in uses),
            tuple(ends),
        )

    def conflict_with(self, slot: Slot) -> ResourceTaken | None:
        """Return the first meeting of another slot that uses a resource at the same time."""
        if not uses_resource(slot):
            return None
        for meeting in slot.all_meetings:
            for name in slot.resources:
                near = bisect_right(self.ends, (name, meeting.start))
                until = bisect_left(self.starts, (name, meeting.end))
                for other_meeting, other in self.meetings[near:until]:
                    if other.id != slot.id and other_meeting.end > meeting.start:
                        return ResourceTaken(name, meeting, other, other_meeting)
        return None
